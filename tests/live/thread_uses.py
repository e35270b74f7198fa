#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""thread_uses.py REPORT PID FOLDER: holds the report against samples of the kernel's counters. One
line "ok - …" or "not ok - …" for each fact."""
import json
import os
import sys
from pathlib import Path

# The kernel updates the counters of a running thread only at ticks. They are as old as the last
# one, which comes late where the host has taken the CPU.
TICK_NS = 10_000_000
STAT_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
failed = False


def fact(is_true, name, figures=""):
    global failed
    if not is_true:
        failed = True
        print(f"# {name}: {figures}")
    print(f"{'' if is_true else 'not '}ok - {name}")


def read_sample(path):
    """{tid: (ns on a CPU, ns waiting for one)}, and under "stolen" the host's ticks"""
    counters = {}
    for line in path.read_text().splitlines():
        if line.startswith("stolen "):
            counters["stolen"] = int(line.split()[1])
            continue
        name, _, values = line.partition("/schedstat:")
        counters[int(name)] = tuple(int(value) for value in values.split()[:2])
    return counters


def count_stolen(first, last):
    """ns that the host may have taken between two samples; 0 where it never takes any"""
    if not last["stolen"]:
        return 0
    return (last["stolen"] - first["stolen"] + 1) * STAT_TICK_NS


def check_counter(thread, key, index, samples):
    tid = thread["tid"]
    before, begun, ends, after = (samples[name][tid][index] for name in
                                  ("before", "begun", "ends", "after"))
    late = TICK_NS + count_stolen(samples["before"], samples["after"])
    fact(ends - begun - late <= thread[key] <= after - before + late,
           f"{key} is what the kernel counts",
           f"{tid}: {ends - begun} <= {thread[key]} <= {after - before}, {late} late")


def main():
    report, pid, folder = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    window = json.loads(report.read_text())
    process, lost = window["processes"][0], window["lost"]["threads"]
    samples = {name: read_sample(folder / name) for name in ("before", "begun", "ends", "after")}
    threads = process["threads"]
    more = process["more_threads"]
    lasting = [thread for thread in threads if not thread["ended"]
               and all(thread["tid"] in sample for sample in samples.values())]
    created = sum(row["calls"] for row in process["syscalls"] if row["name"] == "clone3")

    fact(len(lasting) == 3, "the threads that lasted", str(len(lasting)))
    for thread in lasting:
        check_counter(thread, "cpu_ns", 0, samples)
        check_counter(thread, "cpu_wait_ns", 1, samples)
    fact([thread["tid"] for thread in threads if thread["steps"]] == [pid],
           "the thread that runs steps")
    # A thread that ends together with the window has neither a name nor counters.
    fact(all(thread["name"] == "engine" or thread["cpu_ns"] is None for thread in threads),
         "each has a name")
    fact(sum(thread["calls"] for thread in threads) + more["calls"] ==
           sum(row["calls"] for row in process["syscalls"]), "their calls are those of the process")
    fact(len({thread["tid"] for thread in threads}) == len(threads), "no thread is there twice")
    # Many threads may have existed before.
    fact(created > 100 and len(threads) + more["count"] + lost >= created + 3,
         "no thread is missing, unless it is counted as lost",
         f"{len(threads)} + {more['count']}, lost {lost}, created {created}")
    return failed


sys.exit(main())
