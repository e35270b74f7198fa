#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""wakes.py TRUTH CAPTURE: who ended the waits of tests/live/wakes.c, and what that thread did
meanwhile by its own clocks, against what the tool recorded. One line "ok - …" or "not ok - …" for
each fact."""
import json
import sys

FUTEX, READ, NANOSLEEP = ((202, 0, 230), (98, 63, 115))[int(sys.argv[3] == "aarch64")]
LOCK, ALL = 1, 2  # fbt_wake.flags
FLAGS = {"locks": LOCK, "barrier": ALL}
SLEEP_NS = 20000000
SLEPT = {"sleeps": SLEEP_NS}
failed = False


def fact(name, wrong):
    global failed
    if wrong:
        failed = True
        print("# %s: %s" % (name, wrong[:3]))
    print("%sok - %s" % ("not " if wrong else "", name))


def tolerance_ns(true_ns, true, wake):
    """The clocks were read before the wait began and before it ended, and the thread may have lost
    its CPU there."""
    apart_ns = abs(true["ns"] - (wake["wake_ns"] - wake["start_ns"]))
    return true_ns // 10 + 2000000 + apart_ns


def is_cpu_right(true, wake):
    """No clock of a thread shows the time that the host of a virtual machine takes. The upper bound
    is the time without the thread's waits and sleeps."""
    most_ns = true["ns"] - true["delay_ns"] - SLEPT.get(true["way"], 0)
    apart_ns = tolerance_ns(true["cpu_ns"], true, wake)
    return true["cpu_ns"] - apart_ns <= wake["cpu_ns"] <= most_ns + apart_ns


def is_delay_right(true, wake):
    return abs(wake["delay_ns"] - true["delay_ns"]) <= tolerance_ns(true["delay_ns"], true, wake)


def came_after(true):
    """False: the waiter had no CPU until the wake, so it did not wait, and its time is negative."""
    return true["ns"] < 1 << 63


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


truth = load(sys.argv[1])
events = load(sys.argv[2])
steps = [event for event in events if event["type"] == "step"]
waits = {event["start_ns"]: event for event in events
         if event["type"] == "call" and event["nr"] in (FUTEX, READ)}
rows = []
fact("a record of each step", [] if len(steps) == len(truth) else [len(steps)])
for step, true in zip(steps, truth):
    wakes = [event for event in events if event["type"] == "wake" and
             event["tid"] == step["tid"] and
             step["start_ns"] <= event["start_ns"] <= step["end_ns"]]
    longest = max(wakes, key=lambda wake: wake["wake_ns"] - wake["start_ns"], default=None)
    rows.append((true, longest))
# Answers are looked for only after the first long read of a thread.
del rows[next(i for i, (true, _) in enumerate(rows) if true["way"] == "answers")]
fact("a requeue that wakes nobody ends no wait",
     [(true, wake) for true, wake in rows if true["way"] == "requeues" and wake])
rows = [(true, wake) for true, wake in rows if true["way"] != "requeues"]
fact("each wait is known by its thread",
     [true for true, wake in rows if came_after(true) and
      (not wake or wake["waker"] != true["waker"])])
rows = [(true, wake) for true, wake in rows if wake]
fact("each wake lies in its wait",
     [wake for _, wake in rows if wake["start_ns"] not in waits or wake["wake_ns"] >
      waits[wake["start_ns"]]["start_ns"] + waits[wake["start_ns"]]["duration_ns"]])
fact("the parts sum up to the time until the wake",
     [wake for _, wake in rows if wake["cpu_ns"] + wake["delay_ns"] + wake["call_ns"] +
      wake["unknown_ns"] + wake["off_ns"] + wake["fault_wait_ns"] !=
      wake["wake_ns"] - wake["start_ns"]])
fact("locks and barriers are told apart from hand-overs",
     [(true["way"], wake["flags"]) for true, wake in rows
      if wake["flags"] != FLAGS.get(true["way"], 0)])
exact = [(true, wake) for true, wake in rows if true["way"] not in ("naps_often", "earlier")]
fact("time on a CPU is the thread's own",
     [(true, wake) for true, wake in exact if not is_cpu_right(true, wake)])
fact("waiting for a CPU is the scheduler's own",
     [(true, wake) for true, wake in exact if not is_delay_right(true, wake)])
fact("all of it is known", [wake for true, wake in rows if true["way"] != "naps_often" and
                            wake["unknown_ns"]])
fact("the call is named in which it was",
     [wake for true, wake in rows if true["way"] == "sleeps" and
      not (wake["nr"] == NANOSLEEP and wake["nr_ns"] >= SLEEP_NS * 9 // 10)])
fact("what was done before the wait is not in it",
     [(true, wake) for true, wake in rows if true["way"] == "earlier" and
      wake["cpu_ns"] > wake["wake_ns"] - wake["start_ns"]])
often = [(true, wake) for true, wake in rows if true["way"] == "naps_often"]
fact("of many calls the first are unknown, and no work",
     [(true, wake) for true, wake in often
      if not wake["unknown_ns"] or wake["cpu_ns"] > true["cpu_ns"] + 1000000])
sys.exit(failed)
