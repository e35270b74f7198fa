#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""async.py NAME TRUTH PROFILE: what a program says of its futures against the steps that the tool
made of them; one line "ok - ..." or "not ok - ..." for each fact."""
import json
import sys

PARTS = ["own", "cpu_wait", "faults", "stopped", "off_cpu", "await"] + [
    c + "_net" for c in ["mmap", "futex", "ioctl", "read", "write", "other"]]
# A dropped future is noticed when its memory is used again.
ENDS = {"dropped": ["unwound", "exited"], "panicked": ["unwound", "exited"]}
failed = False


def fact(name, wrong):
    global failed
    for line in wrong[:3]:
        print("# %s: %.300s" % (name, line))
    failed = failed or bool(wrong)
    print("%sok - %s: %s" % ("not " if wrong else "", sys.argv[1], name))


def main():
    truth = json.load(open(sys.argv[2]))
    lines = [json.loads(line) for line in open(sys.argv[3])]
    steps = [dict(e["shape"], us=e["stage_us"]) for e in lines if e.get("event") == "step_prof"]
    for step, calls in zip(steps, [e for e in lines if e.get("event") == "syscall_prof"]):
        step["other_calls"] = calls["shape"]["other_calls"]
    # If the program cannot number its futures, they are in the order of their begin.
    steps.sort(key=lambda step: (step["start_us"], step["step"]))
    by_id = {step.get("arg.id", i): step for i, step in enumerate(steps)}
    fact("each future is one step", [
        (len(steps), len(truth))] if len(steps) != len(truth) or len(by_id) != len(steps) else [])
    pairs = [(row, by_id.get(row["id"])) for row in truth]
    fact("each has been seen", [row for row, step in pairs if not step])
    pairs = [pair for pair in pairs if pair[1]]
    fact("it has ended as it did", [
        p for p in pairs if p[1]["end"] not in ENDS.get(p[0]["end"], [p[0]["end"]])])
    fact("it has all its polls", [p for p in pairs if p[0]["polls"] != p[1]["polls"]])
    fact("it has the calls of its polls, and no others", [
        p for p in pairs if not p[0]["calls"] == p[1]["calls"] == p[1]["other_calls"]
        and p[0]["end"] != "panicked"])
    fact("its thread is that of its first poll", [p for p in pairs if p[0]["tid"] != p[1]["tid"]])
    # The program reads its clock outside of the polls, so it is closer to the tool's clock on one
    # side.
    fact("it awaits for as long as it is not polled", [
        p for p in pairs if p[1]["us"]["await"] < p[0]["await_ns"] // 1000])
    fact("it lasts from its first poll until it is ready", [
        p for p in pairs if p[0]["end"] == "return"
        and not p[0]["await_ns"] // 1000 <= p[1]["us"]["total"] <= p[0]["total_ns"] // 1000])
    fact("its parts are the step", [
        p for p in pairs if sum(p[1]["us"].get(part, 0) for part in PARTS) != p[1]["us"]["total"]])
    fact("those that have returned are complete", [
        p for p in pairs if p[0]["end"] == "return" and not p[1]["complete"]])
    sys.exit(failed)


main()
