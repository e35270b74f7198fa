#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""times.py TRUTH CAPTURE: what tests/live/times.c says of its steps against what the tool recorded
of them. Both files are JSON; one line "ok - …" or "not ok - …" for each fact."""
import json
import sys

MS = 1000000
CPU_KNOWN = 16  # fbt_step.header.flags
failed = False


def fact(name, good, said=None):
    global failed
    if not good:
        failed = True
        print("# %s: %s" % (name, said))
    print("%sok - %s" % ("" if good else "not ", name))


def parts(step):
    """Own code, and the time that is neither own code nor a call nor a wait for a CPU."""
    outside = step["end_ns"] - step["start_ns"] - step["calls_ns"]
    in_calls = step["calls_ns"] - step["call_delay_ns"] - step["asleep_ns"]
    own = step["cpu_ns"] - in_calls
    return own, outside - step["run_delay_ns"] - own


def check(step, truth):
    name = truth["name"]
    said = (step, truth)
    delay = step["run_delay_ns"] + step["call_delay_ns"]
    asleep = truth["wall_ns"] - truth["cpu_ns"] - truth["delay_ns"]
    # Time that the host of a guest took is no sleep, but the kernel does not say which thread lost
    # it.
    stolen = truth["stolen_ns"] + MS
    # The thread may also have waited between reading a clock and the step.
    around = truth["wall_ns"] - (step["end_ns"] - step["start_ns"])
    own, off = parts(step)
    # At the end of a step, the time stolen since the last tick is unknown.
    fact("%s: time on a CPU to 1 ms" % name,
         -MS < step["cpu_ns"] - truth["cpu_ns"] < stolen, said)
    fact("%s: time waiting for a CPU to 1 ms" % name,
         -MS < truth["delay_ns"] - delay < around + MS, said)
    fact("%s: what is left is neither" % name,
         -MS < asleep - off - step["asleep_ns"] < around + stolen, (off, said))
    fact("%s: no part is negative" % name, own > -stolen and off > -MS / 10, (own, off, said))
    if name in ("stop", "stop_in_call"):
        fact("%s: the time that it was stopped is in no call" % name, 140 * MS < off, (off, said))
    elif name == "cold":
        fact("cold: it waited for pages from the disk, and slept in no call", step["major"] and
             step["fault_wait_ns"] <= off <= step["fault_wait_ns"] + stolen and
             not step["asleep_ns"], (off, said))
    else:
        fact("%s: asleep only in calls" % name, off < stolen, (off, said))
    if name in ("spin", "move", "crowd"):
        fact("%s: what it used was for its own code" % name, own > 0.9 * step["cpu_ns"] - stolen,
             (own, said))
    elif name == "copy":
        fact("copy: what it used was in a call", own < stolen, (own, said))
    elif name == "crowd_dozes":
        # It also waited outside of the step, where others want the CPUs, so less of the wait was in
        # the step.
        fact("crowd_dozes: it waited for a CPU in its calls",
             step["call_delay_ns"] > min(MS, truth["delay_ns"] - around - MS), said)


def check_sum(name, steps, truth, tick_ns):
    """schedstat is as of the last tick, and also includes what the program did between its steps.
    """
    total = sum(step["cpu_ns"] for step in steps)
    fact("%s: their time on a CPU in sum" % name,
         truth["inner_ns"] * 0.999 <= total <= truth["outer_ns"] * 1.001, (total, truth))
    between = truth["cpu_ns"] - truth["inner_ns"]
    fact("%s: and by the kernel's own count (schedstat)" % name,
         truth["counted_ns"] - between - tick_ns <= total <= truth["counted_ns"] + tick_ns,
         (total, truth))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        truth = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        steps = [event for event in json.load(file) if event["type"] == "step"]
    wanted, short, crowded = truth["steps"], truth["short"], truth["crowded"]
    fact("every step", len(steps) == len(wanted) + short["count"] + crowded["count"], len(steps))
    fact("the time on a CPU is known", all(step["flags"] & CPU_KNOWN for step in steps))
    for step, its_truth in zip(steps, wanted):
        check(step, its_truth)
    steps = steps[len(wanted):]
    check_sum("short steps", steps[:short["count"]], short, truth["tick_ns"])
    steps = steps[short["count"]:]
    fact("beside a busy loop: it took the CPU from them now and then", crowded["delay_ns"] > 100 * MS,
         crowded)
    check_sum("beside a busy loop", steps, crowded, truth["tick_ns"])
    sys.exit(failed)


main()
