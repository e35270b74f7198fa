#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""team.py TRUTH CAPTURE REPORT PROFILE TRACE: what other threads did during steps, by tests/live/team.c
itself against what the tool recorded and shows. One line "ok - …" or "not ok - …" for each fact."""
import collections
import json
import sys

MS = 1000000
TEAM_TIMED = 512  # fbt_step.header.flags
failed = False


def fact(name, good, said=None):
    global failed
    if not good:
        failed = True
        print("# %s: %s" % (name, said))
    print("%sok - %s" % ("" if good else "not ", name))


def check_series(steps, truth):
    slack = 2 * truth["busy"] * truth["tick_ns"]
    timed = [step for step in steps if step["flags"] & TEAM_TIMED]
    # A walk over the threads that was interrupted gives no figures.
    fact("nearly every step of the series is measured", len(timed) >= 0.8 * len(steps), len(timed))
    lengths = sum(step["end_ns"] - step["start_ns"] for step in timed)
    share = lengths / truth["wall_ns"]
    said = (truth, share, [sum(step[key] for step in timed)
                           for key in ("team_ns", "team_cpu_ns", "team_delay_ns")])
    fact("the threads existed all the time", 0.99 * truth["threads"] * lengths <= said[2][0] <=
         1.01 * truth["threads"] * lengths, said)
    fact("their time on a CPU in sum",
         abs(said[2][1] - share * truth["cpu_ns"]) < 0.03 * truth["cpu_ns"] + slack, said)
    fact("their waits for a CPU in sum",
         abs(said[2][2] - share * truth["delay_ns"]) < 0.03 * truth["delay_ns"] + slack, said)
    fact("one of them waited, and one slept", said[2][2] > 0.1 * lengths and
         said[2][0] - said[2][1] - said[2][2] > (truth["threads"] - 2.2) * lengths, said)
    for step in timed:
        whole = truth["threads"] * (step["end_ns"] - step["start_ns"])
        if step["team_cpu_ns"] + step["team_delay_ns"] > whole + slack:
            fact("no step has more than its threads' time", False, step)
            return
    fact("no step has more than its threads' time", True)


def check_outputs(steps, report, profile, trace):
    timed = [step for step in steps if step["flags"] & TEAM_TIMED]
    kind = [kind for kind in report["kinds"] if kind["name"] == "team_step"][0]
    other = kind["other_threads"]
    fact("the report has their sums", (other["steps"], other["total_ns"], other["cpu_ns"],
                                       other["cpu_wait_ns"]) ==
         (len(timed), sum(step["team_ns"] for step in timed),
          sum(step["team_cpu_ns"] for step in timed),
          sum(step["team_delay_ns"] for step in timed)), other)
    lines = [line["stage_us"] for line in profile if line["event"] == "step_prof"]
    fact("the profile has each", [line.get("other_threads_cpu") for line in lines] ==
         [step["team_cpu_ns"] // 1000 if step["flags"] & TEAM_TIMED else None for step in steps])
    args = [event["args"] for event in trace
            if event.get("name") == "team_step" and "step" in event.get("args", {})]
    fact("the trace has each", [arg.get("other_threads_cpu_us", 0) for arg in args] ==
         [step["team_cpu_ns"] // 1000 for step in steps])
    starved = [step for step in steps if step["starved_ns"] > MS]
    names = collections.Counter(step["starved_tid"] for step in starved).most_common()
    # On two CPUs, both of the computing threads wait.
    fact("steps name the thread that waited", len(starved) > len(steps) / 4 and
         sum(count for _, count in names[:2]) >= 0.9 * len(starved), names)
    fact("and so does the trace", sum(arg.get("starved_us", 0) > 1000 for arg in args) ==
         sum(step["starved_ns"] // 1000 > 1000 for step in steps))
    found = [item for item in report["findings"] if item["kind"] == "threads"]
    fact("that they waited is a finding, with the CPUs", len(found) == 1 and
         found[0].get("cpus", 0) > 0 and found[0]["runnable_per_cpu"] > 0, report["findings"])


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    truth, events, report = (load(path) for path in sys.argv[1:4])
    with open(sys.argv[4], encoding="utf-8") as file:
        profile = [json.loads(line) for line in file]
    trace = load(sys.argv[5])
    steps = [event for event in events if event["type"] == "step"]
    fact("every step", len(steps) == truth["steps"] + 3, len(steps))
    check_series(steps[1:1 + truth["steps"]], truth)
    lost, gained = steps[-2:]
    fact("a step in which a thread ended says nothing", not lost["flags"] & TEAM_TIMED and
         not lost["team_ns"], lost)
    length = gained["end_ns"] - gained["start_ns"]
    # The walk over the threads is some 0.1 ms old: in the sum of a crowd that is more than one thread.
    if truth["threads"] < 10:
        fact("a thread that began in a step counts from then on",
             not gained["flags"] & TEAM_TIMED or
             0.2 * length < gained["team_ns"] - truth["threads"] * length < 0.8 * length, gained)
    check_outputs(steps, report, profile, trace["traceEvents"] if isinstance(trace, dict) else trace)
    sys.exit(failed)


main()
