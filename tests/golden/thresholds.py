#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""thresholds.py TOOL CONVERTER: which steps of a constructed capture are named, and why, under each
threshold and limit. No machine disturbs these steps, so what is named is known exactly."""
import json
import os
import subprocess
import sys
import tempfile

TOOL, CONVERTER = sys.argv[1:]
WORK = 3000  # us of each step's own
failed = False

HEAD = """window detail=all
target tgid=7 comm=engine exe=/usr/bin/engine
kind name=engine_step args=depth,n
"""


def make_steps(count, sleep_us, numbers=lambda n: 1):
    """Makes consecutive steps: each has its own work and a sleep of sleep_us(step)."""
    text, at = HEAD, 1000
    for step in range(1, count + 1):
        us = sleep_us(step)
        end = at + WORK + us
        text += ("call start=%dus dur=%dus name=clock_nanosleep blocked=1\n" % (at + 1000, us) +
                 "step start=%dus end=%dus other=1/%dus args=5,%d run_delay=0\n" %
                 (at, end, us, numbers(step)))
        at = end + 100
    return text + "lost\nend end=%dus\n" % (at + 1000)


class Run:
    """One replay. G: escalations that are shown, by step; H: why others are not shown; W: the
    window; X: the trace; S: the steps."""

    def __init__(self, capture, *options):
        folder = os.path.dirname(capture)
        trace, profile = folder + "/trace.json", folder + "/profile.jsonl"
        if os.path.exists(profile):
            os.remove(profile)
        subprocess.run([TOOL, "-q", "--replay", capture, "--report", "none", "--trace", trace,
                        "--profile", profile, *options], check=True, env={})
        with open(profile, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        escalated = {row["shape"]["step"]: row["shape"] for row in rows
                     if row["event"] == "escalation_prof"}
        self.G = {n: g for n, g in escalated.items() if "not_shown" not in g}
        self.H = {n: g["not_shown"] for n, g in escalated.items() if "not_shown" in g}
        self.S = {row["shape"]["step"]: row["stage_us"] for row in rows
                  if row["event"] == "step_prof"}
        self.W = next(row["shape"] for row in rows if row["event"] == "window_prof")
        with open(trace, encoding="utf-8") as file:
            self.X = json.load(file)

    def named(self):
        return list(self.G)

    def reasons(self):
        return {(g["escalation.reason"], g["cause"]) for g in self.G.values()}

    def counts(self):
        return (self.W["escalations"], self.W["escalations_repeated"],
                self.W["escalations_suppressed"])

    def with_calls(self):
        """The steps that have calls in the trace. Each such call must belong to one step."""
        steps = [x for x in self.X if x["cat"] == "step"]
        calls = [x for x in self.X if x["cat"] == "syscall"]
        inside = {step["args"]["step"] for call in calls for step in steps
                  if step["ts"] <= call["ts"] < step["ts"] + step["dur"]}
        return sorted(inside) if len(inside) == len(calls) else "calls beside steps"


def check(name, got, wanted):
    global failed
    if got == wanted:
        print("ok - thresholds: " + name)
        return
    failed = True
    print("# got %r, wanted %r\nnot ok - thresholds: %s" % (got, wanted, name))


def check_unsteady(make):
    """A third of the steps takes 2.5 times as long. The first ten steps of a class are not judged.
    """
    capture = make(make_steps(100, lambda n: 4700 if n % 3 == 0 else 200,
                              lambda n: 7 if n % 3 == 0 else 1))
    due = [n for n in range(11, 101) if n % 3 == 0]
    run = Run(capture)
    check("an unsteady class is told once in 64 steps", run.named(), [12, 78])
    check("of steps that make it so", run.reasons(), {("cv_exceeded", "sleep")})
    check("the others are counted", run.counts(), (len(due), len(due) - 2, 0))
    check("and in the profile as repeated", run.H,
          {n: "repeated" for n in due if n not in (12, 78)})
    run = Run(capture, "--efficiency-threshold", "60")
    check("inefficient too: each is named", run.named(), due)
    check("inefficient too: for both", run.reasons(), {("both", "sleep")})
    run = Run(capture, "--efficiency-threshold", "60", "--cv-threshold", "90")
    check("inefficient only: each is named", run.named(), due)
    check("inefficient only: for that", run.reasons(), {("efficiency_low", "sleep")})
    check("neither: none is named", Run(capture, "--cv-threshold", "90").named(), [])
    check("compared with their like none is named", Run(capture, "--class-by", "n").named(), [])


def check_limits(make):
    steps = make(make_steps(40, lambda n: 200))
    run = Run(steps, "--class-by", "depth", "--budget-us", "400", "--rate-limit", "3")
    check("a budget: every step is over it from the 11th on", run.counts(), (30, 0, 27))
    check("a rate limit: the first three are shown", run.named(), [11, 12, 13])
    check("a rate limit: the others are in the profile as above it", run.H,
          {n: "rate_limit" for n in range(14, 41)})
    check("a rate limit: only those shown are in the trace", len([x for x in run.X if x["cat"] == "escalation"]), 3)
    check("a budget: efficiency is budget by duration",
          {(g["brick.budget_us"], g["escalation.reason"], g["brick.efficiency"], g["brick.actual_us"])
           for g in run.G.values()}, {("400", "efficiency_low", "12.5", "3200")})
    run = Run(steps, "--budget-us", "400", "--efficiency-threshold", "0", "--cv-threshold", "10000")
    check("thresholds that nothing reaches: none is named", run.counts(), (0, 0, 0))
    run = Run(steps, "--escalate-now")
    check("by hand: the first step", [(n, g["escalation.reason"]) for n, g in run.G.items()],
          [(1, "manual")])


def check_context(make):
    """Which calls a live trace keeps. A replay leaves out the same ones."""
    capture = make(make_steps(60, lambda n: 50000 if n in (20, 40) else 200)
                   .replace("detail=all", "detail=escalated"))
    for context in 0, 1, 2:
        run = Run(capture, "--context", str(context))
        near = {n + i for n in (20, 40) for i in range(-context, context + 1)}
        check("context %d: steps 20 and 40 are named" % context, run.named(), [20, 40])
        check("context %d: calls of the first three steps, the named and their neighbours" % context,
              run.with_calls(), sorted({1, 2, 3} | near))


def main():
    with tempfile.TemporaryDirectory() as folder:
        def make(text):
            with open(folder + "/steps.events", "w", encoding="utf-8") as file:
                file.write(text)
            subprocess.run([CONVERTER, folder + "/steps.events", folder + "/capture"], check=True)
            return folder + "/capture"

        check_unsteady(make)
        check_limits(make)
        check_context(make)
    sys.exit(failed)


main()
