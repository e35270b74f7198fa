#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""long_step.py TRUTH CAPTURE: the time on a CPU of steps of some seconds, by tests/live/long_step.c
itself against what the tool recorded. One line "ok - …" or "not ok - …" for each fact."""
import json
import sys

MS = 1000000
CPU_KNOWN = 16  # fbt_step.header.flags
with open(sys.argv[1], encoding="utf-8") as file:
    truth = json.load(file)
# Skips the hundred thousand calls.
with open(sys.argv[2], encoding="utf-8") as file:
    steps = [json.loads(line.strip("[],\n")) for line in file if '"type": "step"' in line]
failed = False
for name in ("busy_step", "asleep_step"):
    inner, outer = truth[name]["cpu"]
    found = [step for step in steps if step["tid"] == truth[name]["tid"]]
    # The time still includes what the host of a guest took since the last tick.
    good = len(found) == 1 and found[0]["flags"] & CPU_KNOWN and \
        inner - MS < found[0]["cpu_ns"] < outer + 10 * MS
    if not good:
        failed = True
        print("# %s: %s, %s" % (name, truth[name], found))
    print("%sok - %s: its time on a CPU is that of the program's own clock" %
          ("" if good else "not ", name))
sys.exit(failed)
