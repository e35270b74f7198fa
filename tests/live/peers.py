#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""peers.py TRUTH PROFILE CAPTURE WAY REPORT: steps of tests/live/peers.c that wait by WAY for another
process, as the tool judged and counted them, against the program's own account. CAPTURE and REPORT
are JSON. One line "ok - …" or "not ok - …" for each fact."""
import json
import sys

DID = {"computes": ("computed",), "sleeps": ("asleep",), "stopped": ("stopped",),
       "starved": ("no_cpu",), "behind": ("asleep",)}
LATE_NS = 300e6
WAYS = {"futex": "futex", "futex_long": "futex", "poll": "pipe", "pipe": "pipe",
        "socket": "socket"}
# As in include/fbt_event.h and include/fbt_shared.h.
CALL_RUN, CALL_BLOCKED = 8, 2
LONG_NS, GAP_NS, RUN_MAX_NS = 100000, 10000, 16000000
PARTS = ("cpu_ns", "cpu_wait_ns", "stopped_ns", "asleep_ns")
CALLS = {"sleeps": ("nanosleep", "clock_nanosleep"), "behind": ("read",)}
failed = False


def fact(name, wrong):
    global failed
    if wrong:
        failed = True
        print("# %s: %s" % (name, wrong[:3]))
    print("%sok - %s" % ("not " if wrong else "", name))


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def load_lines(path, event):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if line["event"] == event]


def is_disturbed(step):
    """A step that is asleep needs a CPU only when the answer has come: other programs had it."""
    return way in ("futex", "futex_long", "pipe", "socket") and step["cpu_wait"] > 50000


def is_as_long(true, step, us):
    """The step's wait for a CPU after the answer is none for the process."""
    least = (true["ns"] / 1000 - step["cpu_wait"]) * 0.9 - 5000
    return least <= us <= true["ns"] / 1000 * 1.02 + 5000


def is_right(true, shape):
    """A process that computed for 0.3 s of its own CPU time, and took half as long again, had no
    CPU for the rest."""
    wanted = DID[true["trouble"]]
    if true["trouble"] == "computes" and true["ns"] > 1.5 * LATE_NS:
        wanted = ("computed", "no_cpu")
    return shape["cause"] == "peer_process" and shape["peer_did"] in wanted


def is_told(shape, peer):
    """The report has the way that the test took, and the parts of the time sum up."""
    return (peer is not None and peer["pid"] == truth["peer"] and
            peer["way"] == WAYS.get(way, "memory") == shape["peer_way"] and
            peer["did"] == shape["peer_did"] and
            peer["wait_ns"] // 1000 == shape["peer_wait_us"] and
            peer["seen_ns"] == sum(peer[part] for part in PARTS))


def are_one_row(first, then):
    """These records follow each other, and the second belongs into the first: what breaks a row off
    is a long call, a pause, another call, and the longest time of a record."""
    end = then["start_ns"] + then["duration_ns"]
    return (first["flags"] & CALL_RUN and (first["tid"], first["nr"]) == (then["tid"], then["nr"]) and
            (then["flags"] & CALL_RUN or
             then["ret"] == 0 and then["duration_ns"] < LONG_NS and not then["flags"] & CALL_BLOCKED)
            and then["start_ns"] - first["start_ns"] - first["duration_ns"] <= GAP_NS
            and end - first["start_ns"] <= RUN_MAX_NS)


truth = load(sys.argv[1])
steps = load_lines(sys.argv[2], "step_prof")
verdicts = {line["shape"]["step"]: line for line in load_lines(sys.argv[2], "escalation_prof")}
window = load_lines(sys.argv[2], "window_prof")[0]["shape"]
capture = load(sys.argv[3])
way = sys.argv[4]
told = {entry["step"]: entry["peer"] for entry in load(sys.argv[5])["escalations"]["last"]
        if "peer" in entry}

fact("a record of each step", [] if len(steps) == len(truth["steps"]) else [len(steps)])
fact("nothing is lost", [key for key, value in window.items()
                         if key.startswith("lost_") and value])
# The write that asks, and the read of the answer, are no calls of the wait.
others = {"yield": 1, "nap": 1, "futex": 1, "futex_long": 1, "poll": 2, "pipe": 2, "socket": 2}[way]
pairs = list(zip(truth["steps"], steps))
fact("each step has the program's own number of calls",
     [(true["calls"], step["shape"]["calls"]) for true, step in pairs
      if step["shape"]["calls"] != true["calls"] + others])
spans = [(event["start_ns"], event["end_ns"]) for event in capture if event["type"] == "step"]
calls = [event for event in capture if event["type"] == "call"]
recorded, at = [], 0
for begin, end in spans:
    count = 0
    while at < len(calls) and calls[at]["start_ns"] <= end:
        count += calls[at]["calls"] if calls[at]["start_ns"] >= begin else 0
        at += 1
    recorded.append(count)
fact("its records stand for as many",
     [(count, step["shape"]["calls"]) for count, (_, step) in zip(recorded, pairs)
      if count != step["shape"]["calls"]])
fact("each step is complete", [step["shape"]["step"] for step in steps
                               if not step["shape"]["complete"]])
if way in ("yield", "poll"):
    fact("a row of calls has one record, unless it was broken off",
         [(first, then) for first, then in zip(calls, calls[1:]) if are_one_row(first, then)])
    # A yield may give other programs the CPU each time, and takes long then.
    most = max(call["calls"] for call in calls)
    if way == "poll":
        fact("some record stands for many", [] if most >= 100 else [most])
due = [(true, verdicts.get(step["shape"]["step"]), step["stage_us"]) for true, step in pairs
       if true["trouble"] != "none"]
for trouble in DID:
    of_it = [row for row in due if row[0]["trouble"] == trouble]
    rows = [(true, line and line["shape"], step) for true, line, step in of_it
            if not is_disturbed(step)]
    right = [shape for true, shape, _ in rows if shape and is_right(true, shape)]
    print("# %s: %d of %d, %d others had no CPU when the answer had come" %
          (trouble, len(right), len(rows), len(of_it) - len(rows)))
    fact("%s: each is told as a wait for a process, and what that did" % trouble,
         [shape and (shape["cause"], shape["cause_evidence"]) for true, shape, _ in rows
          if not shape or not is_right(true, shape)])
    fact("%s: it is that process" % trouble,
         [shape["cause_evidence"] for shape in right if shape["peer_pid"] != truth["peer"] or
          shape["peer_name"] != "the-peer"])
    fact("%s: the JSON report has the same" % trouble,
         [(shape["step"], told.get(shape["step"])) for shape in right
          if not is_told(shape, told.get(shape["step"]))])
    fact("%s: for as long as it was" % trouble,
         [(true["ns"], shape["cause_us"]) for true, shape, step in rows if shape in right and
          not is_as_long(true, step, shape["cause_us"])])
    if trouble == "stopped":
        fact("who stopped it is named",
             [shape for shape in right if shape.get("stop_signal") != "SIGSTOP" or
              shape.get("stop_sender") != truth["third"]])
    if trouble in CALLS:
        fact("%s: its call is named" % trouble, [shape["cause_evidence"] for shape in right
                                                 if shape.get("peer_call") not in CALLS[trouble]])
if way in ("yield", "nap", "poll", "futex"):
    spun = [line["shape"] for true, line, _ in due if line and is_right(true, line["shape"])]
    seen = [shape["cause_stack"] for shape in spun if "cause_stack" in shape]
    # A thread that ran when it was met, between two of the calls, has the same function.
    doubt = " (it ran on: some may be wrong)"
    fact("a wait that spins has its function",
         [stack for stack in seen if stack.removesuffix(doubt) != "waiting_step"])
    # Looks may take a twentieth of a CPU only.
    fact("most have", [] if len(seen) * 2 >= len(spun) else [(len(seen), len(spun))])
fact("other waits are for no process, unless it had no CPU: other programs may have had it",
     [line["shape"]["cause_evidence"] for (true, step) in pairs
      for line in [verdicts.get(step["shape"]["step"])]
      if line and true["trouble"] == "none" and line["shape"]["cause"] == "peer_process" and
      line["shape"]["peer_did"] != "no_cpu"])
if way not in ("futex_long", "pipe", "socket"):
    fact("the wait is one, with the code between its calls",
         [(true["ns"], step.get("spun")) for true, _, step in due
          if not is_as_long(true, step, step.get("spun", 0))])
sys.exit(failed)
