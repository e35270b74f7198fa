#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The CPU time of a step is right also while another CPU moves the clock of its run queue on.
. "$(dirname "$0")/lib.sh"

[ "$(nproc)" -ge 2 ] || { echo 'SKIP needs two CPUs' && exit 77; }
# The tool reads 50,000 steps a second, and both CPUs are busy.
go_first FBT
steps=$(at_length 100000 500000)
start_program clock "$steps"
attach --step clock_step --detail steps --trace none --profile none --record "$OUT.capture"
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
# A step computes all the time: what it has less than that, it waited, or interrupts took. What the host of
# a virtual machine took counts when the clock is next moved on: some 20 us each time, in a later step. A
# clock that was left half moved on is off by up to a tick.
python3 - "$OUT.json" "$TMP/truth.json" <<'END' || FAILED=1
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    steps = [event for event in json.load(file) if event["type"] == "step"]
with open(sys.argv[2], encoding="utf-8") as file:
    truth = json.load(file)
wrong = []
for step in steps:
    length = step["end_ns"] - step["start_ns"]
    cpu = step["cpu_ns"]
    if cpu > length + 5000 or (cpu < length - step["run_delay_ns"] - 15000 and length < 40000):
        wrong.append((length, cpu, step["run_delay_ns"]))
far = [step for step in wrong if abs(step[0] - step[1] - step[2]) > 150000]
good = (len(steps) >= 0.9 * truth["steps"] and len(wrong) <= len(steps) / 2000 and
        len(far) <= len(steps) / 20000)
print("# %d of %d steps of %d are wrong, %d calls were held up: %s" %
      (len(wrong), len(steps), truth["steps"], truth["held"], wrong[:20]))
print("%sok - the CPU time of each step is its length" % ("" if good else "not "))
sys.exit(not good)
END
finish
