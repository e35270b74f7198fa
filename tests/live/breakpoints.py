#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""breakpoints.py PID SECONDS: how often of 100 looks in that time a probe was in the program's code.

Its code in memory is compared with that in its file: a uprobe is a breakpoint or a call there."""
import os
import sys
import time


def code_of(pid):
    exe = os.path.realpath(f"/proc/{pid}/exe")
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            span, rights, offset, _, _, *path = line.split(None, 5)
            if "x" in rights and path and path[0].strip() == exe:
                begin, end = (int(part, 16) for part in span.split("-"))
                yield begin, end - begin, int(offset, 16)


def main(pid, seconds):
    pieces = []
    with open(f"/proc/{pid}/exe", "rb") as file:
        for address, size, offset in code_of(pid):
            file.seek(offset)
            text = file.read(size)
            pieces.append((address, text))
    assert pieces
    changed = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for _ in range(100):
            for address, text in pieces:
                memory.seek(address)
                if memory.read(len(text)) != text:
                    changed += 1
                    break
            time.sleep(seconds / 100)
    print(changed)


main(int(sys.argv[1]), float(sys.argv[2]))
