#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the host of a virtual machine took of a step's CPU, beside the kernel's own account. Where the host
# takes nothing, no step may say so.
. "$(dirname "$0")/lib.sh"

bpftool btf dump file /sys/kernel/btf/vmlinux 2>/dev/null | grep -q "'prev_steal_time_rq'" ||
	{ echo 'SKIP this kernel does not leave out what its host takes' && exit 77; }
start_program steal "$(at_length 5000 30000)"
attach --step steal_step --detail steps --trace none --profile none --record "$OUT.capture"
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
# The kernel's account is in ticks of 10 ms. A thread does not have what the host takes of its CPU.
python3 - "$OUT.json" "$TMP/truth.json" <<'END' || FAILED=1
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    steps = [event for event in json.load(file) if event["type"] == "step"]
with open(sys.argv[2], encoding="utf-8") as file:
    truth = json.load(file)
stolen_ms = sum(step["steal_us"] for step in steps) / 1000
# While the thread waited for the CPU, the host took it from another one.
own = [(step["steal_us"], (step["end_ns"] - step["start_ns"] - step["cpu_ns"]) / 1000)
       for step in steps if not step["run_delay_ns"]]
own_ms = sum(pair[0] for pair in own) / 1000
odd_ms = sum(max(pair[0] - pair[1], 0) for pair in own) / 1000
print("# %d of %d steps; %d ms were stolen, %.1f ms of them in steps; in steps without waits %.1f ms, "
      "%.1f ms of them on the CPU" %
      (len(steps), truth["steps"], truth["stolen_ms"], stolen_ms, own_ms, odd_ms))
failed = 0
for name, good in [
        ("all steps", len(steps) == truth["steps"]),
        ("no more is stolen than the kernel says", stolen_ms <= truth["stolen_ms"] * 1.02 + 20),
        ("and no less", stolen_ms >= truth["stolen_ms"] * 0.9 - 20),
        ("what was stolen was not computed", odd_ms <= own_ms / 5 + 10)]:
    print("%sok - %s" % ("" if good else "not ", name))
    failed |= not good
if truth["stolen_ms"] < 50:
    print("SKIP how much is stolen: the host took %d ms, which is nothing" % truth["stolen_ms"])
sys.exit(failed)
END
finish
