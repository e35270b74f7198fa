#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""stacks.py TRUTH CAPTURE: holds the stacks of a capture against those that the engine has written
down (tests/live/stacks.cc).  stacks.py CAPTURE GDB: the only one against what gdb says."""
import json
import re
import sys

CUT, LOST, GUESSED, WAKER = 1, 2, 4, 8


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def tell(name, good, why=""):
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        print("#", why)
        sys.exit(1)


class Capture:
    def __init__(self, path):
        records = load(path)
        self.codes = {r["id"]: r for r in records if r["type"] == "code"}
        stacks = [r for r in records if r["type"] == "stack"]
        self.stacks = sorted((s for s in stacks if not s["flags"] & WAKER), key=lambda s: s["start_ns"])
        self.wakers = {s["start_ns"]: s for s in stacks if s["flags"] & WAKER}

    def frames(self, stack):
        """Without libc's own at the end."""
        frames = [self.codes[i] for i in stack["codes"]]
        while frames and re.search(r"/(libc|libstdc\+\+)[.-]", frames[0]["path"]):
            frames.pop(0)
        return frames


def check_stack(capture, stack, truth):
    """None, or what is wrong."""
    frames = capture.frames(stack)
    callers = [f["address"] for f in frames[1:]]
    whole = [f for f in truth["frames"]][: len(callers)]
    if truth["way"] == "cut":
        return None if stack["flags"] == CUT and not callers else ("not cut", frames)
    if stack["flags"]:
        return "flags", stack["flags"]
    if not callers or callers != whole:
        return "callers", callers, whole
    return None if frames[-1]["function"] in ("engine_step", "") else ("last", frames[-1])


def check(truth, capture):
    stacks = truth["stacks"]
    tell(
        "every slow call of a step has a stack, and no other call",
        len(stacks) == len(capture.stacks) > 10,
        (len(stacks), len(capture.stacks)),
    )
    for way in sorted({s["way"] for s in stacks}):
        wrong = [
            check_stack(capture, found, expected)
            for found, expected in zip(capture.stacks, stacks)
            if expected["way"] == way
        ]
        tell(f"{way}: its callers are those of backtrace, to the address", not any(wrong), wrong)
    held = [s for s, t in zip(capture.stacks, stacks) if t["way"] in ("lock", "pipe")]
    # Who writes to a pipe is looked for once a step has waited so.
    held = held[1:]
    tell(
        "each wait for a thread has the stack of that thread",
        held and all(s["start_ns"] in capture.wakers for s in held),
        held,
    )
    tell(
        "each file has its build-id",
        all(re.fullmatch("[0-9a-f]{40}", c["build_id"]) for c in capture.codes.values()),
        capture.codes,
    )


def check_gdb(capture, path):
    with open(path, encoding="utf-8") as file:
        names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([\w:]+)", file.read(), re.MULTILINE)
    found = [f["function"] for f in capture.frames(capture.stacks[-1])]
    # Of functions that were inlined gdb knows too.
    seen = [n for n in names if n in found]
    tell("gdb sees the same functions in the same order", found == seen == ["deep_frame", "engine_step"], (found, names))


if len(sys.argv) == 3 and sys.argv[2].endswith(".gdb"):
    check_gdb(Capture(sys.argv[1]), sys.argv[2])
else:
    check(load(sys.argv[1]), Capture(sys.argv[2]))
