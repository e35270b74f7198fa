#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Of tests/live/merge.sh.

    shift IN OUT OFFSET-NS DRIFT-PPM PID       the same trace by another clock, of process PID
    check OUT TABLE A B CASE OFFSET-NS DRIFT-PPM  the merged trace against the Kineto traces before that
    spoil TOOL FOLDER                          merges traces with wrong bytes
"""
import json
import os
import random
import subprocess
import sys
from fractions import Fraction

LEAST_NS = 100000  # rounds.c


def ns(micros):
    return round(Fraction(repr(micros)) * 1000)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def events_of(trace):
    return trace["traceEvents"] if isinstance(trace, dict) else trace


def shift(source, target, offset, drift, pid):
    """Time t of the trace becomes t + offset + drift * (t - begin), without moving wall clocks."""
    trace = load(source)
    events = events_of(trace)
    begin = min(ns(event["ts"]) for event in events if event["ph"] == "X")
    old = next(event["pid"] for event in events if event["ph"] == "X")
    is_whole = isinstance(trace, list)
    if not is_whole:
        trace["baseTimeNanoseconds"] += int(offset)
        offset = 0
    for event in events:
        if event["pid"] == old:
            event["pid"] = int(pid)
        if "ts" not in event:
            continue
        time = ns(event["ts"])
        moved = max(0, time + int(offset) + round(float(drift) * 1e-6 * (time - begin)))
        event["ts"] = moved // 1000 if is_whole else moved / 1000
    with open(target, "w", encoding="utf-8") as file:
        json.dump(trace, file, separators=(",", ":"))


def spans(trace, name):
    """Begins and ends in nanoseconds since 1970, of slices of a step function."""
    found = []
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event.get("args", {}).get("ferrum.step") == name:
            begin = trace["baseTimeNanoseconds"] + ns(event["ts"])
            found.append((begin, begin + ns(event["dur"])))
    return sorted(found)


class Facts:
    def __init__(self, case):
        self.case, self.failed = case, False

    def fact(self, name, is_true, *figures):
        print("ok -" if is_true else "not ok -", f"{self.case}: {name}")
        if not is_true:
            print("#", *figures)
        self.failed |= not is_true


def check(out, table, first, second, case, offset, drift):
    facts = Facts(case)
    merged, a, b = load(out), load(first), load(second)
    clock = merged["ferrum.merge"][1]
    events = [event for event in merged["traceEvents"] if event["ph"] == "X"]
    # Both were on one host: what its own clock says is right.
    wanted = [spans(trace, "all_reduce") for trace in (a, b)]
    facts.fact("by collectives, nearly all", clock["by"] == "collectives" and
               clock["matched"] >= 0.98 * min(map(len, wanted)), clock)
    sleeps = [(b["baseTimeNanoseconds"] + ns(event["ts"]), b["baseTimeNanoseconds"] + ns(event["ts"]) + ns(event["dur"]))
              for event in b["traceEvents"] if event["name"] == "clock_nanosleep"]
    error = clock["error_ns"]
    facts.fact("the error is less than a millisecond", error < 1000000, clock)
    # Microseconds that were rounded down, or 2 ns of a double.
    rounded = 2100 if case.startswith("ferrum") else 10
    kinds = ("all_reduce",)
    got = {}
    for event in events:
        if event["name"] in kinds or event.get("args", {}).get("ferrum.step") in kinds:
            got.setdefault(event["pid"], []).append((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])))
    pids = sorted(got, key=lambda pid: pid)
    facts.fact("two processes have collectives, with different pids", len(pids) == 2, pids)
    lists = [sorted(got[pid]) for pid in pids]
    # Which is which: b's has the pid of a, or its own.
    order = [lists[0], lists[1]]
    if len(order[0]) != len(wanted[0]) or abs((order[0][0][1] - order[0][0][0]) -
                                              (wanted[0][0][1] - wanted[0][0][0])) > rounded + 1000:
        order.reverse()
    facts.fact("no collective is lost", list(map(len, order)) == list(map(len, wanted)), list(map(len, order)),
               list(map(len, wanted)))
    zero = order[0][0][0] - wanted[0][0][0]
    worst = max(abs(mine[0] - zero - right[0]) for mine, right in zip(order[1], wanted[1]))
    facts.fact("the other clock is right within the error", worst <= error + rounded, worst, error, clock)
    ppm = clock["drift_ppm"]
    facts.fact("so is the drift", abs(ppm + float(drift)) <= clock["drift_error_ppm"] + 0.5, ppm, drift, clock)
    late_check(facts, events, wanted, sleeps, zero, error + rounded)
    with open(table, encoding="utf-8") as file:
        text = file.read()
    facts.fact("the table has both ranks and the clocks", text.count("reference") == 1 and
               "collectives" in text and "worst step" in text, text)
    sys.exit(facts.failed)


def late_check(facts, events, wanted, sleeps, zero, error):
    """Which rank begins last, by the traces' common clock, against what is in the merged trace."""
    late = sorted((ns(event["ts"]), ns(event["dur"]), event) for event in events if event["cat"] == "late")
    # Both are traced from the first to the last one.
    facts.fact("as many collectives in both", len(wanted[0]) == len(wanted[1]) > 1000, list(map(len, wanted)))
    pairs = list(zip(*wanted))
    told = {label: [] for label in {event["name"] for _, _, event in late}}
    for begin, length, event in late:
        told[event["name"]].append((begin - zero, length, event))
    sure = [(pair, abs(pair[0][0] - pair[1][0])) for pair in pairs
            if abs(pair[0][0] - pair[1][0]) > LEAST_NS + 2 * error]
    right = wrong = 0
    names = sorted(told, key=lambda name: name)
    for (one, other), length in sure:
        rank = 0 if one[0] > other[0] else 1
        start = min(one[0], other[0])
        hits = [name for name in names for begin, got, _ in told[name]
                if abs(begin - start) <= error and abs(got - length) <= 2 * error]
        right += len(hits) == 1 and is_rank(hits[0], rank, names)
        wrong += len(hits) == 1 and not is_rank(hits[0], rank, names)
    facts.fact("whoever was late is told, and nobody else", right >= 0.98 * len(sure) and wrong == 0 and
               len(late) <= 1.02 * sum(abs(one[0] - other[0]) > LEAST_NS - 2 * error for one, other in pairs),
               right, wrong, len(sure), len(late))
    told_of = [[entry for name in names if is_rank(name, rank, names) for entry in told[name]] for rank in (0, 1)]
    # Where the second rank slept for most of the time for which it was late, that is what it did.
    mostly = [event for begin, length, event in told_of[1]
              if sum(max(0, min(end, begin + length) - max(start, begin)) for start, end in sleeps) > 0.7 * length]
    asleep = [event for event in mostly if "clock_nanosleep" in event["args"]["meanwhile"]]
    facts.fact("what the late one did meanwhile: it slept", len(asleep) >= max(5, 0.9 * len(mostly)), len(asleep),
               len(mostly), len(sleeps))
    facts.fact("the other one did not", not any("clock_nanosleep" in event["args"]["meanwhile"]
                                                for _, _, event in told_of[0]))


def is_rank(label, rank, names):
    """By the rank in the label, or the file's name, or the order."""
    if label.startswith("rank "):
        return label.startswith(f"rank {rank},")
    return label.startswith("a" if rank == 0 else ("b", "s"))


def spoil(tool, folder):
    """Wrong bytes in one of two traces: whatever comes out, it comes soon, and by an exit."""
    draw = random.Random(7)
    sizes = {}
    for name in ("b.pftrace", "b.kineto.json", "b.json"):
        with open(os.path.join(folder, name), "rb") as file:
            sizes[name] = file.read(60000)
    for turn in range(150):
        name = draw.choice(sorted(sizes))
        data = bytearray(sizes[name])
        for _ in range(draw.choice((1, 3, 30))):
            data[draw.randrange(len(data) if turn % 2 else 600)] = draw.randrange(256)
        path = os.path.join(folder, "spoilt" + name[1:])
        with open(path, "wb") as file:
            file.write(data)
        run = subprocess.run([tool, "merge", os.path.join(folder, "a.json"), path, "-o",
                              os.path.join(folder, "spoilt.out.json")], capture_output=True, timeout=60, check=False)
        if run.returncode not in (0, 1):
            print("#", name, turn, run.returncode, run.stderr[-300:])
            sys.exit(1)


if __name__ == "__main__":
    {"shift": shift, "check": check, "spoil": spoil}[sys.argv[1]](*sys.argv[2:])
