#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""args.py TRUTH CAPTURE DETAIL: what tests/live/args.c did against what the tool recorded of it.
Both files are JSON; one line "ok - …" or "not ok - …" for each fact."""
import json
import sys

UNFINISHED, BLOCKED, ARGS = 1, 2, 4  # fbt_call.header.flags
SCHED_UNKNOWN = 4  # fbt_step.header.flags
LOST_FILES = 5
RESTARTED = -512  # ERESTARTSYS
NO, YES, MAYBE = range(3)
failed = False


def fact(name, good, said=None):
    global failed
    if not good:
        failed = True
        print("# %s: %s" % (name, said))
    print("%sok - %s" % ("" if good else "not ", name))


def differs(call, wanted, files):
    """Describes how a recorded call is wrong; None if it is right."""
    seen = {
        "nr": call["nr"], "args": call["args"],
        "path": files[call["file"]]["path"] if call["file"] else None,
        "ret": call["ret"], "known": bool(call["flags"] & ARGS),
    }
    want = {key: wanted[key] for key in ("nr", "args", "path", "ret")}
    want["known"] = True
    if wanted["blocked"] != MAYBE:
        seen["blocked"] = bool(call["flags"] & BLOCKED)
        want["blocked"] = wanted["blocked"] == YES
    return None if seen == want else "%r, wanted %r" % (seen, want)


def inside(call, step):
    return call["tid"] == step["tid"] and step["start_ns"] <= call["start_ns"] <= step["end_ns"]


def check_calls(steps, truth, calls, files):
    for step, wanted in zip(steps, truth):
        own = [call for call in calls if inside(call, step)]
        wrong = [difference for call, want in zip(own, wanted["calls"])
                 for difference in [differs(call, want, files)] if difference]
        count = len(own) == len(wanted["calls"])
        fact("%s: each call with its arguments, its file, and whether it waited" % wanted["name"],
             count and not wrong, wrong[:3] if count else
             "%r, wanted %r" % ([(call["nr"], call["ret"]) for call in own],
                                [(call["nr"], call["ret"]) for call in wanted["calls"]]))


def check_order(events):
    known, early = set(), []
    for event in events:
        if event["type"] == "file":
            known.add(event["id"])
        elif event["type"] == "call" and event["file"] and event["file"] not in known:
            early.append(event)
    fact("each file comes before the first call that names it", not early, early[:3])


def check_files(calls, files):
    wrong = [(call, files[call["file"]]) for call in calls
             if call["file"] and files[call["file"]]["fd"] not in (call["args"][0], call["ret"])]
    fact("a file has the descriptor that its calls used", not wrong, wrong[:3])
    null = [file for file in files.values() if file["path"] == "/dev/null"]
    fact("a device has its number", null and all(
        file["mode"] & 0o170000 == 0o020000 and file["node_device"] == 1 << 20 | 3
        for file in null), null)


def check_waits(steps, truth, fresh):
    known = [step for step in steps if not step["flags"] & SCHED_UNKNOWN]
    fact("all steps but the open one know what they waited", len(known) == len(truth) - 1,
         [step["flags"] for step in steps])
    forked = False
    for step, wanted in zip(known, truth):
        name = wanted["name"]
        # A fork shares the pages that the program wrote last, so reading the counts causes faults
        # too.
        forked |= name == "burn"
        missing = [wanted[sort] - step[sort] for sort in ("minor", "major")]
        if name == "populate":
            fact("populate: page faults inside of a call are not the step's",
                 step["minor"] == 0 and wanted["minor"] >= fresh, (step, wanted["minor"]))
        else:
            fact("%s: as many page faults as the kernel counted" % name,
                 all(0 <= count <= (2 if forked else 0) for count in missing),
                 (step, wanted["minor"]))
        delay, whole = step["run_delay_ns"], wanted["run_delay_ns"]
        if name == "burn":
            fact("burn: waits for the CPU are the scheduler's own figure",
                 whole > 50e6 and 0.97 * whole <= delay <= whole, (delay, whole))
        elif name == "doze":
            fact("doze: waits for the CPU inside of calls are not the step's",
                 whole > 2e6 and delay <= whole * 0.8, (delay, whole))
        else:
            fact("%s: no wait that the scheduler does not know" % name, delay <= whole,
                 (delay, whole))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        truth = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        events = json.load(file)
    detail = sys.argv[3]
    steps = [event for event in events if event["type"] == "step"]
    # A call that was interrupted is made again by the kernel: the tear-down of the ring, which comes
    # late on a busy machine, interrupts the wait that lasts by then.
    calls = [event for event in events if event["type"] == "call" and event["ret"] != RESTARTED]
    files = {event["id"]: event for event in events if event["type"] == "file"}
    fact("every step", len(steps) == len(truth["steps"]), (len(steps), len(truth["steps"])))
    check_waits(steps, truth["steps"], truth["fresh"])
    fact("no file was lost", all(event["count"][LOST_FILES] == 0 for event in events
                                 if event["type"] == "lost"))
    fact("a page fault has its price", 50e3 < events[0]["fault_ps"] < 100e6, events[0])
    if detail == "steps":
        # A file without a descriptor is one of a mapping that had page faults.
        used = [file for file in files.values() if file["fd"] >= 0]
        fact("no calls and no files of calls", not calls and not used, (calls, files))
        sys.exit(failed)
    check_calls(steps, truth["steps"], calls, files)
    check_order(events)
    check_files(calls, files)
    touch = [step for step, wanted in zip(steps, truth["steps"]) if wanted["name"] == "touch"][0]
    fact("touch: a fault for each fresh page", touch["minor"] >= truth["fresh"], touch)
    last = [call for call in calls if inside(call, steps[-1])]
    fact("the call that is open at the end says so",
         [call["flags"] for call in last] == [UNFINISHED | BLOCKED | ARGS], last)
    outside = [call for call in calls if not any(inside(call, step) for step in steps)]
    fact("outside of steps no call has arguments",
         bool(outside) == (detail == "all") and
         all(call["flags"] & ARGS == 0 and call["args"] == [0, 0] and not call["file"]
             for call in outside), outside[:3])
    sys.exit(failed)


main()
