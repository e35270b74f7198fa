# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What the files of a dump hold, as facts.

usage: watch_facts.py escalation|manual|calls STEM SLOW_MS
"""
import gzip
import json
import sys

what, stem, slow_ms = sys.argv[1], sys.argv[2], int(sys.argv[3])


def lines(name):
    with gzip.open(name, "rt") as file:
        events = [json.loads(line) for line in file]
    return [e | e["shape"] for e in events]


def fact(name, holds, said=""):
    print(("ok - " if holds else f"# {said}\nnot ok - ") + f"{what}: {name}")


profile = lines(stem + ".jsonl.gz")
steps = [e for e in profile if e["event"] == "step_prof"]
windows = [e for e in profile if e["event"] == "window_prof"]
escalated = [e for e in profile if e["event"] == "escalation_prof"]
with gzip.open(stem + ".trace.json.gz", "rt") as file:
    trace = json.load(file)
with open(stem + ".html", encoding="utf-8") as file:
    page = file.read()


def took(step):
    return step["stage_us"]["total"]


slow = [s for s in steps if took(s) >= slow_ms * 1000]
in_trace = [x for x in trace if x["cat"] == "step"]
fact("one window", len(windows) == 1, windows)
fact("nothing lost", all(v == 0 for k, v in windows[0].items() if k.startswith("lost_")), windows)
fact("all steps are complete", all(s["complete"] for s in steps[1:-1]), steps)
fact("trace and profile have the same steps", len(in_trace) == len(steps),
     f"{len(in_trace)} {len(steps)}")
fact("the page has the step function", "engine_step" in page)
if what == "escalation":
    fact("it has one slow step", len(slow) == 1, [took(s) for s in slow])
    before = [s for s in steps if slow and s["step"] < slow[0]["step"]]
    fact("and the steps before it", len(before) >= 300, len(before))
    fact("and some after it", slow and steps[-1]["step"] > slow[0]["step"])
    fact("it is escalated", slow and slow[0]["step"] in [e["step"] for e in escalated], escalated)
    fact("no call was traced", all(x["cat"] != "syscall" for x in trace))
elif what == "manual":
    manual = [e for e in escalated if e["escalation.reason"] == "manual"]
    fact("one step was escalated by hand", len(manual) == 1, escalated)
else:
    fact("system calls of steps were traced", any(e["event"] == "syscall_prof" and e["calls"]
                                                   for e in profile))
