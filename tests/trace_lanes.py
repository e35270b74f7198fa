#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""trace_lanes.py TRACE CAPTURE: in a trace of the default form the slices of each thread nest, in the
order of the file, those of a stream follow each other, and all work and calls of the capture are there.

One "ok - …" or "not ok - …" for each fact."""
import json
import os
import sys
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "live"))
import gpu_capture  # noqa: E402

GPU_LANES = 10000000
WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
CALLS = {"cuda_runtime", "cuda_driver"}
status = 0


def state(good, fact, detail=""):
    global status
    print(f"{'ok' if good else 'not ok'} - {fact}{'' if good else ': ' + str(detail)}")
    status |= not good


def misfits(events):
    """Slices that partly overlap another slice."""
    lanes = defaultdict(list)
    for number, event in enumerate(events):
        lanes[(event["pid"], event["tid"])].append((event["ts"], -event["dur"], number, event))
    for lane in lanes.values():
        open_ends = []
        for start, minus_length, _, event in sorted(lane, key=lambda slice: slice[:3]):
            while open_ends and open_ends[-1][0] <= start:
                open_ends.pop()
            if open_ends and start - minus_length > open_ends[-1][0]:
                yield event, open_ends[-1][1]
            open_ends.append((start - minus_length, event))


def disorder(events):
    """Syscalls that come before a CUDA call in the same microsecond of a step. Of two slices that
    begin in the same microsecond, viewers take the first one for the outer one."""
    lanes = defaultdict(list)
    for number, event in enumerate(events):
        lanes[(event["pid"], event["tid"])].append((number, event))
    for lane in lanes.values():
        for _, step in lane:
            if step["cat"] != "step":
                continue
            inside = [(number, event["cat"]) for number, event in lane if step["ts"] < event["ts"] and
                      event["ts"] + event["dur"] < step["ts"] + step["dur"]]
            calls = [number for number, cat in inside if cat in CALLS]
            syscalls = [number for number, cat in inside if cat == "syscall"]
            if calls and syscalls and max(calls) > min(syscalls):
                yield events[min(syscalls)], events[max(calls)]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        events = json.load(file)
    capture = gpu_capture.load_capture(sys.argv[2])
    host = [event for event in events if event["tid"] < GPU_LANES]
    work = [event for event in events if event["tid"] >= GPU_LANES]
    state(all(event["cat"] in WORK for event in work) and all(event["cat"] not in WORK for event in host),
          "work of GPUs is on lanes of their own, and nothing else is")
    for part, what in ((host, "threads"), (work, "streams")):
        found = list(misfits(part))
        state(not found, f"slices of {what} nest", found[:3])
    found = list(disorder(host))
    state(not found, "calls to CUDA come before the syscalls in them", found[:3])
    for what, cats, rows in (("work", WORK, capture[gpu_capture.WORK]), ("calls", CALLS, capture[gpu_capture.API])):
        drawn = sum(event["cat"] in cats for event in events)
        measured = sum(row.stop != 0 for row in rows)
        state(drawn == measured, f"all {what} that CUPTI measured is drawn", (drawn, measured))
    return status


if __name__ == "__main__":
    sys.exit(main())
