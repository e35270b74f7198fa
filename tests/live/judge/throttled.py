#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""throttled.py TRUTH PROFILE: holds what the tool says of each step's throttled time against what the
engine has read in cpu.stat just before and just after the step, and prints

    STEPS SAME MORE

STEPS  in which, or at whose edges, the engine was throttled
SAME   those of them of which both say the same, to the microsecond
MORE   steps of which the tool says more
"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    wanted = {number: row[4] // 1000 for number, row in enumerate(json.load(file)["steps"], 1)}
with open(sys.argv[2], encoding="utf-8") as file:
    rows = [json.loads(line) for line in file]
got = {row["shape"]["step"]: row["stage_us"].get("throttled_all_cpus", 0)
       for row in rows if row["event"] == "step_prof"}
throttled = [number for number, us in wanted.items() if us]
print(len(throttled), sum(abs(got[n] - wanted[n]) <= 1 for n in throttled),
      sum(got[n] > us + 1 for n, us in wanted.items()))
