#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""hang.py TRUTH PROFILE DETAIL: the hangs of tests/live/hang.c against what the profile says of them.
One line "ok - …" or "not ok - …" for each fact."""
import json
import sys

failed = False


def fact(name, good, said=None):
    global failed
    if not good:
        failed = True
        print("# %s: %s" % (name, said))
    print("%sok - %s" % ("" if good else "not ", name))


def check_call(name, shape, stage, truth, detail):
    call = shape.get("call")
    if detail == "probes":
        fact("%s: no call is named where none is traced" % name, call is None, shape)
    elif name == "read":
        fact("read: the call is named", call == "read" and "pipe:[" in shape["evidence"], shape)
    elif name == "lock":
        fact("lock: the call and the lock are named",
             call == "futex" and "lock at %#x" % truth["lock"] in shape["evidence"], shape)
    elif name == "compute":
        fact("compute: it is in no call", call is None and "own code" in shape["evidence"], shape)
    else:
        fact("yield: it is in no call for long",
             call in (None, "sched_yield") and stage.get("call", 0) < 1e6, (shape, stage))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        truth = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    detail = sys.argv[3]
    epoch = events[-1]["shape"]["epoch_monotonic_us"]
    hangs = [event for event in events if event["event"] == "hang_prof"]
    steps = {event["shape"]["start_us"]: event for event in events
             if event["event"] == "step_prof"}
    fact("every step is there", len(steps) == truth["healthy"] + len(truth["hangs"]), len(steps))
    fact("each hang once, and no idle time", len(hangs) == len(truth["hangs"]), hangs)
    for hang, wanted in zip(hangs, truth["hangs"]):
        name, shape, stage = wanted["name"], hang["shape"], hang["stage_us"]
        called, begin = (wanted[key] / 1e3 - epoch for key in ("called_ns", "begin_ns"))
        step = steps.get(shape["start_us"])
        fact("%s: which step, since when" % name, step and shape["tid"] == truth["tid"] and
             shape["kind"] == "hang_step" and called - 1 <= shape["start_us"] <= begin + 1,
             (shape, called, begin))
        fact("%s: for how long so far" % name, step and
             1e6 <= stage["open"] <= step["stage_us"]["total"], (stage, step))
        check_call(name, shape, stage, truth, detail)
    return failed


sys.exit(main())
