#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""folded.py FOLDED TRUTH CAPTURE: holds folded stacks of tests/live/stacks.cc against the format, the
records of the calls, and what the engine has measured."""
import json
import re
import sys

WAKER = 8
SLOW_US = 30000
# Of each way: the frames after the step function, up to the one that makes the call.
WAYS = {
    "lock": r"take_lock\b[^;]*",
    "pipe": r"read_pipe\b[^;]*",
    "nap": r"pause_for<[^;]*",
    "deep": r"deep_frame\b[^;]*",
    "recursion": r"(forward[^;]*;){8}forward[^;]*",
    "cut": r"\[cut off\];too_deep\b[^;]*",
}
CALLS = {"lock": "futex", "pipe": "read"}


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def tell(name, good, why=""):
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        print("#", why)
        sys.exit(1)


def check_format(data):
    """What inferno, flamegraph.pl and speedscope's importer take for a line: frames between
    semicolons, a space, a number; each stack once."""
    tell("it ends with a newline", data.endswith("\n"), data[-80:])
    lines = data.split("\n")[:-1]
    pattern = re.compile(r"(?:[^;\x00-\x1f\x7f]+;)+\[[a-z0-9_]+\] (\d+)")
    wrong = [line for line in lines if not pattern.fullmatch(line)]
    tell("each line is frames and a number", lines and not wrong, wrong)
    stacks = [line.rsplit(" ", 1)[0] for line in lines]
    tell("each stack is one line, in order", stacks == sorted(set(stacks), key=str.encode), stacks)
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}


def main(path, truth, capture):
    with open(path, encoding="utf-8") as file:
        folded = check_format(file.read())
    records = load(capture)
    stacks = [r for r in records if r["type"] == "stack" and not r["flags"] & WAKER]
    durations = {(r["tid"], r["start_ns"]): r["duration_ns"] for r in records if r["type"] == "call"}
    told = sum(durations[s["tid"], s["start_ns"]] for s in stacks)
    # Each line is rounded down.
    tell(
        "the sum is that of the calls with a stack",
        0 <= told / 1000 - sum(folded.values()) < len(folded),
        (told, folded),
    )
    for way, frames in WAYS.items():
        calls = [s for s in load(truth)["stacks"] if s["way"] == way]
        line = re.compile(f"engine_step;{frames};(.*;)?\\[{CALLS.get(way, 'clock_nanosleep')}\\]")
        found = {stack: us for stack, us in folded.items() if line.fullmatch(stack)}
        tell(f"{way}: its calls are one line", len(found) == 1, (line.pattern, folded))
        low = 0 if way in CALLS else len(calls) * SLOW_US
        tell(
            f"{way}: no longer than the engine has measured, no shorter than it slept",
            calls and low <= sum(found.values()) <= sum(c["us"] for c in calls),
            (found, calls),
        )
    tell("there is nothing else", len(folded) == len(WAYS), folded)


main(*sys.argv[1:])
