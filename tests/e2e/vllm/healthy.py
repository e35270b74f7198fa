#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""healthy.py PROFILE CLOCKS COUNTERS PASSES: holds the verdicts on a vLLM worker with nothing wrong against what
the kernel counted: of its step thread for each step (CLOCKS, vllm/clocks), of all its threads each 5 ms
(COUNTERS, trouble/counters.py). Prints facts.

A named step is confirmed if its thread was ready to run without a CPU for longer than usual, by more than half of
what the step took too long. Where another thread of the worker is named, it may have been that one.

This is not the rule of live/judge/score.py, which also wants 1 ms of it: what that takes for the wait is all time
off the CPU, with waits of the step's own in it. By that floor, and with counters that were read every 2 ms only,
35 steps of an earlier run were not confirmed, most of them sample_tokens of 0.3 to 0.4 ms."""
import bisect
import collections
import json
import re
import statistics
import sys

PROFILE, CLOCKS, COUNTERS, PASSES = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
PASS = "GPUModelRunner.execute_model"
failed = False


def fact(name, is_true):
    global failed
    print("ok -" if is_true else "not ok -", name)
    failed |= not is_true


def read_rows(path):
    """The last line may be in the middle of being written."""
    with open(path, encoding="ascii") as file:
        return [line.split() for line in file if line.endswith("\n")]


def read_events():
    events = collections.defaultdict(list)
    with open(PROFILE, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            events[row["event"]].append((row["shape"], row["stage_us"]))
    return events


clocks = sorted(tuple(int(text) / 1000 for text in row) for row in read_rows(CLOCKS))
begins = [row[0] for row in clocks]
samples = [(int(row[0]) / 1000, dict(map(int, text.split(":")[:2]) for text in row[4:]))
           for row in read_rows(COUNTERS)]
times = [us for us, _ in samples]
events = read_events()
epoch_us = events["window_prof"][-1][0]["epoch_monotonic_us"]
worker = next(shape["pid"] for shape, _ in events["step_prof"] if shape["kind"] == PASS)


def clock_of(shape, us):
    """The line of the call that the step is; None: it was not written."""
    begin = epoch_us + shape["start_us"]
    at = bisect.bisect(begins, begin + 1) - 1
    return clocks[at] if at >= 0 and begin + us["total"] <= clocks[at][1] + 1 else None


def delay_of(tid, shape, us):
    """How long another thread waited for a CPU, from the last sample before the step to the first after it."""
    begin = epoch_us + shape["start_us"]
    first, last = bisect.bisect(times, begin) - 1, bisect.bisect_left(times, begin + us["total"])
    if first < 0 or last == len(samples):
        return 0
    before, after = samples[first][1], samples[last][1]
    return after.get(tid, 0) - before.get(tid, after.get(tid, 0))


def others_of(step, verdict):
    """The other threads that the verdict names."""
    found = re.findall(r"(?:thread|tid) (\d+)", verdict.get("cause_evidence") or "")
    return {int(tid) for tid in found + [step.get("starved_tid", 0)]} - {0, step["tid"]}


steps = {shape["step"]: (shape, us, clock_of(shape, us)) for shape, us in events["step_prof"]
         if shape["pid"] == worker}
steps = {n: step for n, step in steps.items() if step[2]}
usual_us = {kind: statistics.median(clock[2] for shape, _, clock in steps.values() if shape["kind"] == kind)
            for kind in {shape["kind"] for shape, _, _ in steps.values()}}
named = {shape["step"]: (shape, us) for shape, us in events["escalation_prof"] if shape["step"] in steps}


def is_confirmed(n):
    (step, us, clock), (verdict, verdict_us) = steps[n], named[n]
    excess_us = verdict_us["actual"] - verdict_us["budget"]
    if (clock[2] - usual_us[step["kind"]]) * 2 > excess_us:
        return True
    return any(delay_of(tid, step, us) * 2 > excess_us for tid in others_of(step, verdict))


# What a worker computes in its own step is work of EngineCore's step, which waits for it.
waits = [shape for shape, _ in events["escalation_prof"]
         if shape["pid"] != worker and shape.get("peer_step") and shape.get("peer_did") == "computed"]
passes = sum(shape["kind"] == PASS for shape, _, _ in steps.values())
unconfirmed = [n for n in named if not is_confirmed(n)]
for n in unconfirmed:
    shape, us = named[n]
    print("# not confirmed:", n, steps[n][0]["kind"], us["actual"], "us, budget", us["budget"], "by the kernel",
          steps[n][2][2:], shape["cause"], shape.get("cause_evidence"))
print("#", passes, "passes of", len(steps), "steps of the worker;", len(named), "named,",
      len(named) - len(unconfirmed), "of them confirmed:",
      dict(collections.Counter(shape["cause"] for shape, _ in named.values())), "; usual wait", usual_us)
fact(f"at least {PASSES} forward passes with what the kernel counted", passes >= PASSES)
fact(f"of 1,000 steps at most one is named that no counter confirms: {len(unconfirmed)} of {len(steps)}",
     len(unconfirmed) * 1000 <= len(steps))
fact(f"of 1,000 steps at most one is named because the worker computed in its own: {len(waits)} of {len(steps)}",
     len(waits) * 1000 <= len(steps))
sys.exit(failed)
