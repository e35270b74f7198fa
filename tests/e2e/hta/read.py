#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""read.py TRACE…: reads Kineto traces with HolisticTraceAnalysis itself, and holds what it makes of them
against what is in the file. Run by the interpreter of hta/install.sh. One fact a line."""
import collections
import json
import os
import sys
import warnings

# Else it rounds begins up and ends down, to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")
from hta.trace_analysis import TraceAnalysis  # noqa: E402

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
failed = False


def fact(name, is_true, *figures):
    global failed
    print("ok -" if is_true else "not ok -", name, flush=True)
    if figures:
        print("#", *figures)
    failed |= not is_true


def union_of(events):
    total, reached = 0.0, float("-inf")
    for begin, end in sorted((e["ts"], e["ts"] + e["dur"]) for e in events):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def check_gpu(analysis, work):
    # Its times are of 32 bits: 0.03 us in a second.
    near = 0.2 * len(work)
    kernels = [e for e in work if e["cat"] == "kernel"]
    count, spent = collections.Counter(), collections.Counter()
    for event in kernels:
        count[event["name"]] += 1
        spent[event["name"]] += event["dur"]
    times = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    busy = times["kernel_time(us)"] - times["idle_time(us)"]
    fact("its temporal breakdown: as much GPU time as there is", abs(busy - union_of(work)) < near,
         busy, union_of(work))
    table = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)[1]
    rows = {row["name"]: row["sum (us)"] for _, row in table.iterrows() if row["kernel_type"] == "COMPUTATION"}
    fact("its kernel breakdown: every kernel, with its time", rows.keys() == count.keys() and
         all(abs(rows[name] - spent[name]) < near for name in rows), rows, dict(spent))
    idle = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    lanes = collections.defaultdict(list)
    for event in work:
        lanes[event["tid"]].append(event)
    for stream, rows in idle.groupby("stream"):
        lane = sorted(lanes[stream], key=lambda e: e["ts"])
        gaps = sum(max(0.0, b["ts"] - a["ts"] - a["dur"]) for a, b in zip(lane, lane[1:]))
        fact(f"its idle breakdown: all gaps of stream {stream} have a cause",
             abs(rows["idle_time"].sum() - gaps) < near, rows["idle_time"].sum(), gaps)


def check_figures(analysis, work):
    """Each other analysis that is about a GPU gives figures, those that can be told by the file."""
    begins = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
    launched = {e["args"]["correlation"] for e in work if not e["name"].startswith("Memcpy PtoP")}
    fact("its launch statistics: launches of the file only, each with a delay", len(begins) > 0 and
         set(begins["correlation"]) <= launched and not begins["launch_delay"].isna().any(), len(begins))
    bandwidth = analysis.get_memory_bw_summary()
    copies = {" ".join(e["name"].split(" (")[0].split()[:2]) for e in work if e["cat"] != "kernel"}
    # Copies that overlap have one figure.
    fact("its bandwidths: of every kind of copy", set(bandwidth.index.get_level_values("name")) == copies and
         (bandwidth["memory_bw_gbps"]["max"] > 0).all(), bandwidth, copies)
    series = analysis.get_queue_length_time_series()
    queue = analysis.get_queue_length_summary()
    fact("its queue lengths: two for each piece of work at most, never below 0", len(series[0]) > 0 and
         len(series[0]) <= 2 * len(work) and queue["queue_length"]["min"].min() >= 0, queue)
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    fact("its overlap with communication: a row, without a figure where no kernel is NCCL's", len(overlap) == 1 and
         overlap["comp_comm_overlap_pctg"].isna().all(), overlap)


def check(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    slices = [e for e in events if "dur" in e and "cat" in e and e["cat"] != "Trace"]
    steps = {e["name"] for e in slices if e["name"].startswith("ProfilerStep#")}
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path) or ".",
                             include_last_profiler_step=True)
    rows = analysis.t.get_trace(0)
    # It joins a wait for the device with each call that has the same correlation.
    fact("it reads every slice, once", rows["index"].nunique() == len(rows) == len(slices),
         rows["index"].nunique(), len(rows), len(slices))
    fact("it finds every iteration", len(analysis.t.get_iterations()) == len(steps) > 0,
         len(analysis.t.get_iterations()), len(steps))
    work = [e for e in slices if e["cat"] in WORK]
    if work:
        check_gpu(analysis, work)
        check_figures(analysis, work)


for name in sys.argv[1:]:
    check(name)
sys.exit(failed)
