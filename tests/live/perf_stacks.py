#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""perf_stacks.py CAPTURE SCRIPT TID: holds the stacks of a capture against those of perf script."""
import json
import re
import sys

CUT, WAKER = 1, 8


def read_perf(path):
    """[(time_ns, [(function, offset), …])]"""
    samples = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            head = re.match(r"\s*(\d+)\s+(\d+)\.(\d{9}):", line)
            frame = re.match(r"\s+[0-9a-f]+ (\S.*?)(?:\+0x([0-9a-f]+))? \((.*)\)$", line)
            if head:
                samples.append((int(head[2]) * 10**9 + int(head[3]), []))
            elif frame and samples:
                samples[-1][1].append((re.sub(r"[<(].*", "", frame[1]), int(frame[2] or "0", 16)))
    return samples


def tell(name, good, why):
    print(f"{'ok' if good else 'not ok'} - {name}")
    if not good:
        print("#", why)
    return good


def main(capture, script, tid):
    with open(capture, encoding="utf-8") as file:
        records = json.load(file)
    codes = {r["id"]: r for r in records if r["type"] == "code"}
    calls = {r["start_ns"]: r for r in records if r["type"] == "call" and r["tid"] == int(tid)}
    samples = read_perf(script)
    compared = 0
    good = tell("perf has samples", len(samples) > 20, len(samples))
    for stack in records:
        if stack["type"] != "stack" or stack["flags"] & WAKER or stack["tid"] != int(tid) or not good:
            continue
        call = calls[stack["start_ns"]]
        end_ns = call["start_ns"] + call["duration_ns"]
        time_ns, frames = min(samples, key=lambda s: abs(s[0] - end_ns))
        ours = [codes[i] for i in stack["codes"]]
        # perf tells where a call returns to, or the byte before that. What has no symbol has no offset.
        # Functions of libc have several names.
        same = len(frames) >= len(ours) and all(
            ("/libc" in mine["path"] or re.sub(r"[<(].*", "", mine["function"]) == its[0])
            and its[1] - mine["offset"] in (0, 1)
            for mine, its in zip(ours, frames)
            if mine["function"] and its[0] != "[unknown]"
        )
        named = sum(1 for mine in ours if mine["function"])
        if not same or named < 2 or abs(time_ns - end_ns) > 10**6:
            good = tell("each stack is that of perf", False, (time_ns - end_ns, ours, frames))
        compared += 1
    return good and tell("each stack is that of perf, to the instruction", compared >= 10, compared)


sys.exit(0 if main(*sys.argv[1:]) else 1)
