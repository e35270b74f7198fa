#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""handlers.py TRUTH PROFILE: what tests/live/handlers.c says of its steps against what the tool
recorded of them; one line "ok - ..." or "not ok - ..." for each fact."""
import json
import sys

failed = False


def fact(name, wrong):
    global failed
    for line in wrong[:3]:
        print("# %s: %s" % (name, line))
    failed = failed or bool(wrong)
    print("%sok - %s" % ("not " if wrong else "", name))


def told(step):
    shape, us = step["shape"], step["stage_us"]
    return (shape.get("signal_handlers", 0), shape.get("signal_handlers_left", 0),
            us.get("signal_handlers", 0))


def main():
    truth = json.load(open(sys.argv[1]))
    lines = [json.loads(line) for line in open(sys.argv[2])]
    steps = [line for line in lines if line.get("event") == "step_prof"]
    fact("all steps are there", [] if len(steps) == len(truth) else [(len(steps), len(truth))])
    for name in dict.fromkeys(row["name"] for row in truth):
        pairs = [(row, told(step)) for row, step in zip(truth, steps) if row["name"] == name]
        fact("%s: handlers are counted" % name,
             [p for p in pairs if (p[0]["handled"], p[0]["left"]) != p[1][:2]])
        # Entering a handler, and the handler's own calls, take some microseconds. What the host of
        # a virtual machine takes is known at the next tick only, and may count for another one.
        fact("%s: their time is right" % name,
             [p for p in pairs if not -100 - p[0]["away_ns"] / 1000
              < p[1][2] - p[0]["cpu_ns"] / 1000
              < 100 + 50 * p[0]["handled"] + p[0]["away_ns"] / 1000])
        away = [row["away_ns"] // 1000 for row, _ in pairs]
        print("# %s: without a CPU for %d us at most, %d in the median" % (
            name, max(away), sorted(away)[len(away) // 2]))
    sys.exit(failed)


main()
