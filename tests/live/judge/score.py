#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""score.py TRUTH PROFILE: holds the verdicts of a run against the engine's own account, and prints

    ANOMALOUS SLOW FOUND WRONG FALSE CONFIRMED CAUSES

ANOMALOUS  1 if the mode has causes for which steps are slow, 0 if all of its steps are healthy
SLOW       due steps that took more than four times the usual, by the engine's clock
FOUND      those of them that were named
WRONG      those of them that were named for a cause that is not theirs, nor this machine's
FALSE      named steps that were healthy; CONFIRMED are as many more, in which the engine's thread was
           kept off its CPU by something else on this machine: by its own clock, or by that of
           its worker, where both spin for each other
CAUSES     of all named steps, with their number

and a line for each slow step that was not named.
"""
import collections
import json
import statistics
import sys

SLOW = 4
NOISE_NS = 1000000  # what healthy modes wait for by themselves is less


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def load_events(path, name):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["shape"]["step"]: row for row in rows if row["event"] == name}


class Step:
    def __init__(self, row):
        begin_ns, end_ns, cpu_ns, due, throttled_ns = row
        self.ns = end_ns - begin_ns
        self.off_ns = self.ns - min(cpu_ns + throttled_ns, self.ns)
        self.due = bool(due)


def is_confirmed(step, named, usual_off_ns):
    excess_ns = (named["stage_us"]["actual"] - named["stage_us"]["budget"]) * 1000
    off_ns = step.off_ns - usual_off_ns[step.due]
    return off_ns > NOISE_NS and off_ns * 2 > excess_ns


def main():
    truth = load(sys.argv[1])
    steps = dict(enumerate(map(Step, truth["steps"]), 1))
    named = {n: row for n, row in load_events(sys.argv[2], "escalation_prof").items()
             if "not_shown" not in row["shape"]}
    seen = load_events(sys.argv[2], "step_prof")
    if sorted(seen) != sorted(steps):
        sys.exit(f"{truth['mode']}: the tool saw {len(seen)} steps of {len(steps)}")
    causes = truth["causes"].split(",") if truth["causes"] else []
    usual_ns = statistics.median(s.ns for s in steps.values() if not s.due)
    usual_off_ns = {due: statistics.median([s.off_ns for s in steps.values() if s.due == due] or [0])
                    for due in (False, True)}
    slow = {n for n, s in steps.items() if causes and s.due and s.ns > SLOW * usual_ns}
    found = slow & set(named)
    wrong = {n for n in found if named[n]["shape"]["cause"] not in causes
             and not (named[n]["shape"]["cause"] == "run_queue"
                      and is_confirmed(steps[n], named[n], usual_off_ns))}
    healthy = {n for n in named if not (causes and steps[n].due)}
    confirmed = {n for n in healthy if is_confirmed(steps[n], named[n], usual_off_ns)}
    kinds = collections.Counter(row["shape"]["cause"] for row in named.values())
    print(int(bool(causes)), len(slow), len(found), len(wrong), len(healthy - confirmed),
          len(confirmed), ",".join(f"{kind}:{count}" for kind, count in kinds.items()) or "-")
    for n in sorted(slow - found):
        print(f"# {truth['mode']}: missed #{n}, {steps[n].ns / 1e6:.1f} ms, usually {usual_ns / 1e6:.1f}; "
              f"off its CPU for {steps[n].off_ns / 1e6:.1f} ms")


main()
