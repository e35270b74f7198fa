#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""kineto_pandas.py TRACE PROFILE: reads a Kineto trace as HolisticTraceAnalysis does, with pandas, and
computes its temporal breakdown and its idle breakdown by stream; then, from the trace alone, what the
profile's gpu_prof lines say of each complete step, which must come out to the nanosecond.

One "ok - …" or "not ok - …" for each fact; exit 77 after "SKIP why" without pandas."""
import json
import math
import sys
from decimal import Decimal

try:
    import pandas as pd
except ImportError:
    print("SKIP python3-pandas is not installed")
    sys.exit(77)

WORK = ["kernel", "gpu_memcpy", "gpu_memset", "kernel_uncorrelated"]
NEXT_DEVICES, PROCESS_DEVICES = 5000000, 1000
KERNEL_DELAY_US = 30
status = 0


def state(good, fact, detail=""):
    global status
    print(f"{'ok' if good else 'not ok'} - {fact}{'' if good else ': ' + str(detail)}")
    status |= not good


def frame_of(events):
    """Rows with dur and cat, with the args that HTA keeps; the index is the event's number."""
    rows = pd.DataFrame(events)
    rows = rows.dropna(subset=["dur", "cat"])
    rows = rows[rows["cat"] != "Trace"].copy()
    for key in ("stream", "correlation"):
        rows[key] = rows["args"].apply(lambda args: args.get(key, -1) if isinstance(args, dict) else -1)
    rows["index"] = rows.index
    return rows


def round_times(rows):
    """Rounds as HTA does with times that have a fraction."""
    end = (rows["ts"] + rows["dur"]).apply(math.floor)
    rows["ts"] = rows["ts"].apply(math.ceil)
    rows["dur"] = end - rows["ts"]
    return rows


def link(rows):
    """index_correlation: for work the row of its call, for a call the row of its last work."""
    rows["index_correlation"] = rows["correlation"].clip(upper=0)
    known = rows[rows["correlation"] != -1]
    host, work = known[known["stream"] == -1], known[known["stream"] >= 0]
    merged = host.merge(work, on="correlation", how="inner")
    rows.loc[merged["index_x"], "index_correlation"] = merged["index_y"].values
    rows.loc[merged["index_y"], "index_correlation"] = merged["index_x"].values
    return merged


def union(rows):
    """Length of the union of the rows' intervals."""
    rows = rows.sort_values("ts")
    end = rows["ts"] + rows["dur"]
    group = (rows["ts"] > end.shift().cummax()).cumsum()
    merged = pd.DataFrame({"ts": rows["ts"], "end": end}).groupby(group).agg({"ts": "min", "end": "max"})
    return int((merged["end"] - merged["ts"]).sum())


def check_temporal(rows, unit):
    work = rows[rows["stream"] != -1]
    compute = work[~work["name"].str.match(r"nccl|.*ncclKernel|Memcpy|Memset")]
    total = int((work["ts"] + work["dur"]).max() - work["ts"].min())
    busy = union(work)
    idle, computing = total - busy, union(compute)
    good = 0 <= idle <= total and computing <= total and total - computing - idle >= 0
    state(good, f"temporal breakdown in {unit}: idle <= kernel time, no negative rest",
          (total, busy, computing))
    print(f"# kernel time {total}, idle {idle}, compute {computing}, other {total - computing - idle}")


def check_idle(rows):
    work = rows[rows["stream"] != -1].copy()
    calls = rows.set_index("index")["ts"]
    work["call_ts"] = work["index_correlation"].map(lambda index: calls.get(index, math.nan))
    for (device, stream), lane in work.groupby(["pid", "stream"]):
        lane = lane.sort_values("ts")
        previous = (lane["ts"] + lane["dur"]).shift()
        gap = lane["ts"] - previous
        host = lane["call_ts"] > previous
        kernel = ~host & (gap < KERNEL_DELAY_US)
        parts = [float(gap[which].sum()) for which in (host, kernel, ~host & ~kernel)]
        state(abs(sum(parts) - float(gap.sum())) < 1e-6 and gap[host].ge(0).all(),
              f"idle breakdown of device {device}, stream {stream} adds up", parts)


def exact(trace):
    """The events once more, with ts and dur in whole nanoseconds."""
    events = []
    for event in trace["traceEvents"]:
        event = dict(event)
        for key in ("ts", "dur"):
            if key in event:
                event[key] = int(event[key] * 1000)
        events.append(event)
    return frame_of(events)


def owner_of(pid):
    return 0 if pid < NEXT_DEVICES else (pid - NEXT_DEVICES) // PROCESS_DEVICES


def figures(step, work, others):
    """Busy and idle time of a step. Idle time is charged by cause: each gap between the process's
    work is split at the begin and end of the call that launched the next work. The gap after the
    last work within the step is charged by what had been launched by the end of the gap; for others
    also by other threads."""
    begin, end = int(step["ts"]), int(step["ts"] + step["dur"])
    inside = work[(work["ts"] < end) & (work["ts"] + work["dur"] > begin)].sort_values("ts")
    sums = dict.fromkeys(["busy", "host_wait", "launch", "queue", "unattributed", "hta_host_wait"], 0)
    reached = begin

    # call: its time, None if nothing comes after the gap, or "unknown".
    def charge(gap_end, call):
        if gap_end <= reached:
            return
        if isinstance(call, str):
            sums["unattributed"] += gap_end - reached
            return
        first, last = (gap_end, gap_end) if call is None else \
            [min(max(time, reached), gap_end) for time in (call["ts"], call["ts"] + call["dur"])]
        sums["host_wait"] += first - reached
        sums["hta_host_wait"] += gap_end - reached if first > reached else 0
        sums["launch"] += last - first
        sums["queue"] += gap_end - last

    for _, item in inside.iterrows():
        start, stop = max(int(item["ts"]), begin), min(int(item["ts"] + item["dur"]), end)
        together = inside[(inside["ts"] == item["ts"]) & inside["call_ts"].notna()]
        charge(start, first_call(together) if len(together) else "unknown")
        sums["busy"] += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    behind = work[(work["ts"] >= end) & (work["call_ts"] < end)]
    if not others:
        behind = behind[behind["call_tid"] == step["tid"]]
    charge(end, first_call(behind[behind["ts"] == behind["ts"].min()]) if len(behind) else None)
    sums["idle"] = end - begin - sums["busy"]
    return sums


def first_call(work):
    """Of work that begins at the same time, the call that began first."""
    row = work.loc[work["call_ts"].idxmin()]
    return {"ts": int(row["call_ts"]), "dur": int(row["call_dur"])}


def compare(found, line):
    """Lists where the profile differs."""
    told = {key: line["stage_us"][key] if key == "hta_host_wait" else line["shape"][f"{key}_ns"]
            for key in found}
    found["hta_host_wait"] //= 1000
    return [f"{key} {told[key]}, by the trace {found[key]}" for key in found if told[key] != found[key]]


def check_steps(rows, profile):
    lines = [event for event in profile if event["event"] == "gpu_prof" and
             event["shape"]["scope"] == "step"]
    wanted = {event["shape"]["step"]: event for event in lines if event["shape"]["complete"]}
    state(wanted, "the profile has complete steps with GPU records", len(lines))
    work = rows[rows["cat"].isin(WORK)].copy()
    work["owner"] = work["pid"].apply(owner_of)
    work = work[work["dur"] > 0]
    host = rows[(rows["stream"] == -1) & (rows["correlation"] != -1)]
    calls = host[["correlation", "ts", "dur", "tid"]].rename(
        columns={"ts": "call_ts", "dur": "call_dur", "tid": "call_tid"})
    work = work.merge(calls, on="correlation", how="left")
    owners = {row["pid"]: int(row["correlation"]) >> 32 for _, row in host.iterrows()}
    bad = []
    for _, step in rows[rows["name"].str.startswith("ProfilerStep#")].iterrows():
        number = int(step["name"].split("#")[1])
        line = wanted.pop(number, None)
        if line is None:
            continue
        work_of_it = work[work["owner"] == owners.get(step["pid"])]
        # A call of another thread may still be unknown when the step's figures are computed.
        found = [compare(figures(step, work_of_it, others), line) for others in (True, False)]
        if all(found):
            bad += [f"step {number}: {text}" for text in found[0]]
    state(not bad, "busy and idle time of each step, and its parts, are those of the trace", bad[:10])
    state(not wanted, "each step of the profile is in the trace", sorted(wanted)[:10])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    with open(sys.argv[2], encoding="utf-8") as file:
        profile = [json.loads(line) for line in file]
    rows = frame_of(json.loads(text)["traceEvents"])
    state(len(rows) and {"dur", "cat", "stream", "correlation"} <= set(rows.columns),
          "a frame of the events has the columns")
    merged = link(rows)
    work = rows[(rows["stream"] != -1) & (rows["correlation"] != -1)]
    state(len(merged) == len(work) and work["index_correlation"].gt(0).all(),
          "each piece of work joins one call, and no call is row 0", (len(merged), len(work)))
    check_idle(rows)
    check_temporal(round_times(rows.copy()), "us, rounded")
    exact_rows = exact(json.loads(text, parse_float=Decimal))
    check_temporal(exact_rows, "ns")
    check_steps(exact_rows, profile)
    return status


if __name__ == "__main__":
    sys.exit(main())
