#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""fault_memory.py LIBRARY EVERY OUT COMMAND…: runs the command, which writes OUT.trace and OUT.profile,
with each allocation failing in turn (tests/fake/fail_alloc.c), each EVERY-th of them, alone and with all
that follow. Prints what must not be: other ends than exit status 0 and 1, a failure without a line, and
files that are not whole where the status is 0."""
import json
import os
import subprocess
import sys

library, every, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
command = sys.argv[4:]
SECONDS = 60


def run(**variables):
    for end in (".trace", ".profile", ".trace.partial"):
        if os.path.exists(out + end):
            os.remove(out + end)
    environment = dict(os.environ, LD_PRELOAD=library, **variables)
    return subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False)


def check_files(report):
    """Incomplete steps must say so, equally in all three files."""
    with open(out + ".trace", encoding="utf-8") as file:
        drawn = sum(event["cat"] == "step" for event in json.load(file))
    with open(out + ".profile", encoding="utf-8") as file:
        events = [json.loads(line) for line in file.read().splitlines()]
    window = events[-1]["shape"]
    steps = sum(event["event"] == "step_prof" for event in events)
    assert events[-1]["event"] == "window_prof" and window["pids"]
    assert drawn == steps == window["steps"] == json.loads(report)["steps"], (drawn, steps, window["steps"])


def try_one(number, count):
    """Describes how that run is wrong; None if it is right."""
    try:
        done = run(FAIL_AT=str(number), FAIL_COUNT=str(count))
    except subprocess.TimeoutExpired:
        return "still running after %d s" % SECONDS
    said = done.stderr.decode()
    if done.returncode not in (0, 1):
        return "status %d: %s" % (done.returncode, said)
    # Before main(), the loader's own allocations fail.
    if done.returncode == 1 and "ferrum-bpftrace:" not in said:
        return "status 1 without a word: " + said
    if done.returncode == 1:
        return None
    try:
        check_files(done.stdout)
    except (AssertionError, OSError, ValueError, IndexError) as error:
        return "status 0, but %r" % error
    return None


def main():
    counted = run(FAIL_COUNT_TO=out + ".count")
    assert counted.returncode == 0, counted.stderr
    with open(out + ".count", encoding="utf-8") as file:
        total = int(file.read())
    failed = tried = 0
    for count in (1, 1 << 40):
        for number in range(1, total + 1, every):
            wrong = try_one(number, count)
            tried += 1
            if wrong:
                failed += 1
                print("# allocation %d%s: %s" % (number, "" if count == 1 else " and all behind it", wrong.strip()))
    print("# %d runs, %d allocations, %d wrong" % (tried, total, failed))
    return min(failed, 1)


sys.exit(main())
