#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""page_faults.py TRUTH CAPTURE PROFILE: what tests/live/page_faults.c says of its steps against what
the tool recorded of them; one line "ok - ..." or "not ok - ..." for each fact."""
import json
import statistics
import sys

MS = 1000000
TIMED = 1024  # fbt_step.header.flags
FILE, ANON, STACK = 1, 2, 3  # enum fbt_mapping
failed = False


def fact(name, wrong):
    global failed
    for line in wrong[:3]:
        print("# %s: %s" % (name, line))
    failed = failed or bool(wrong)
    print("%sok - %s" % ("not " if wrong else "", name))


def most(step):
    return max(range(4), key=lambda i: step["faults_ns"][i])


def wall_of(true, step):
    """Fractions of the time in which a step touched its pages: the time in faults, waits for a disk
    included, and the same plus all of the step's waits for a CPU, which may be part of it or not.
    """
    faults_ns = step["faults_cpu_ns"] + step["faults_asleep_ns"] + step["fault_wait_ns"]
    return faults_ns / true["touch_ns"], (faults_ns + step["run_delay_ns"]) / true["touch_ns"]


def check_times(name, pairs):
    # The thread's clock stands still while it waits. Time that the host of a guest took is
    # subtracted at a tick, which may come outside of the faults.
    wrong = [p for p in pairs if not 0.8 * p[0]["cpu_ns"] - 1.5 * MS
             < p[1]["faults_cpu_ns"] < 1.05 * p[0]["cpu_ns"] + 1.5 * MS]
    fact("%s: the time of its faults is what its thread used, in 5 of 6" % name,
         wrong if 6 * len(wrong) > len(pairs) else [])
    ratio = statistics.median(p[1]["faults_cpu_ns"] / p[0]["cpu_ns"] for p in pairs)
    print("# %s: %.3f of it" % (name, ratio))
    if name == "cold":
        # In a wait for a disk, the thread's clock still runs while the kernel switches away and
        # handles pending interrupts. That is a quarter of this time, but belongs to the wait, so
        # both are compared with the wall clock.
        fact("%s: the median of it is no more" % name, [] if ratio < 1.02 else [ratio])
        least, most_of = (statistics.median(all) for all in zip(*(wall_of(*p) for p in pairs)))
        print("# %s: %.3f of the wall clock, %.3f with waits for a CPU" % (name, least, most_of))
        wrong = [] if least < 1.02 and most_of > 0.8 else [(least, most_of)]
    else:
        wrong = [] if 0.8 < ratio < 1.02 else [ratio]
    fact("%s: the median of it is" % name, wrong)
    fact("%s: and nothing slept in them that was not for a disk" % name,
         [p for p in pairs if p[1]["faults_asleep_ns"] > MS])
    fact("%s: the mappings have all of it" % name,
         [p for p in pairs if abs(sum(p[1]["faults_ns"]) - p[1]["faults_cpu_ns"]
                                  - p[1]["faults_asleep_ns"] - p[1]["fault_wait_ns"]) > MS])


def check(name, pairs, files):
    fact("%s: its faults are timed" % name, [p for p in pairs if not p[1]["flags"] & TIMED])
    if name in ("none", "in_call"):
        fact("%s: and there were none outside of calls" % name,
             [p for p in pairs if p[1]["minor"] + p[1]["major"] > 4
              or p[1]["faults_cpu_ns"] > MS])
        return
    # Faults in reading the counters themselves are not in the step.
    fact("%s: each is counted" % name,
         [p for p in pairs if abs(p[0]["minor"] - p[1]["minor"]) > 4
          or p[0]["major"] != p[1]["major"]
          or p[1]["minor"] + p[1]["major"] - sum(p[1]["faults_count"]) > 4])
    check_times(name, pairs)
    wanted = {"anon": ANON, "file": FILE, "stack": STACK, "cold": FILE,
              "remapped": FILE}[name]
    fact("%s: what they were for" % name,
         [p for p in pairs if most(p[1]) != wanted or
          p[1]["faults_count"][wanted] < 0.95 * sum(p[1]["faults_count"])])
    if wanted == FILE:
        end = "/pages.cold" if name == "cold" else "/pages"
        fact("%s: of which file" % name,
             [p for p in pairs if not files.get(p[1]["faults_file"], "").endswith(end)])


def stolen(true):
    """What the host, or another thread, took at most; a wait for a disk is neither."""
    return max(true["touch_ns"] - true["cpu_ns"], 0) if true["name"] != "cold" else 0


def parts_are_wrong(line):
    us = line["stage_us"]
    parts = ("own", "cpu_wait", "mmap_net", "futex_net", "ioctl_net", "read_net", "write_net",
             "other_net", "faults", "disk_wait", "stopped", "off_cpu")
    return sum(us.get(part, 0) for part in parts) != us["total"]


def main():
    truth = json.load(open(sys.argv[1]))
    events = json.load(open(sys.argv[2]))
    lines = [json.loads(line) for line in open(sys.argv[3])]
    steps = [event for event in events if event["type"] == "step"]
    files = {event["id"]: event["path"] for event in events if event["type"] == "file"}
    profiles = [line for line in lines if line["event"] == "step_prof"]
    fact("all steps are there", [] if len(steps) == len(truth) == len(profiles) else
         [(len(steps), len(truth), len(profiles))])
    pairs = list(zip(truth, steps))
    fact("the first has faults that nobody times: they are absent, not 0",
         [p for p in [profiles[0]] if "faults" in p["stage_us"] or steps[0]["flags"] & TIMED])
    fact("all others have faults that are timed",
         [p for p in pairs[1:] if not p[1]["flags"] & TIMED])
    for name in ("none", "anon", "file", "stack", "cold", "in_call", "remapped"):
        check(name, [p for p in pairs if p[0]["name"] == name], files)
    fact("the parts of each step sum up to it", [p for p in profiles if parts_are_wrong(p)])
    # What the host of a guest took while pages were touched may be taken back from faults: see above.
    fact("own code has no fault in it that is timed",
         [(t, p["stage_us"]) for t, p in list(zip(truth, profiles))[3:]
          if p["stage_us"]["own"] > (t["own_ns"] + 0.15 * t["cpu_ns"] + MS + stolen(t)) / 1000])
    sys.exit(failed)


main()
