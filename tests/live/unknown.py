# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""unknown.py TRUTH LIST ADDRESS: whether --list-steps has found the function at ADDRESS as the step,
and measured of it what the program itself has accounted for: in some two seconds of its account
there were so many steps, and they lasted so long."""
import json
import re
import sys

SECOND = 1_000_000_000
# A call that is in progress at either end, and what the probes themselves take.
CALLS = 2
PROBES_MS = 0.2

failed = False


def fact(name, holds, got):
    global failed
    print(f"{'ok' if holds else 'not ok'} - {name}" if holds else f"# {got}\nnot ok - {name}")
    failed = failed or not holds


def windows(steps):
    """Number and mean duration in ms of the steps in two seconds, from each of the steps on."""
    end = 0
    for first, (begin, _) in enumerate(steps):
        end = max(end, first)
        while end < len(steps) and steps[end][0] < begin + 2 * SECOND:
            end += 1
        if end == len(steps):
            return
        yield end - first, sum(ns for _, ns in steps[first:end]) / (end - first) / 1e6


truth, listed, address = sys.argv[1:]
with open(truth) as file:
    found = list(windows(json.load(file)["steps"]))
with open(listed) as file:
    text = file.read()
row = re.search(r"found by the stacks.*\n.*\n +([\d.]+) +([\d.]+) ms .*?(\S+)\+0x([0-9a-f]+) ", text)
fact("a step is found", row is not None, text)
if row:
    calls, mean = float(row[1]), float(row[2])
    low, high = min(n for n, _ in found) / 2, max(n for n, _ in found) / 2
    shortest, longest = min(ms for _, ms in found), max(ms for _, ms in found)
    print(f"# {row[0].splitlines()[-1].strip()}; the account: {low:.1f} to {high:.1f} a second, "
          f"mean {shortest:.3f} to {longest:.3f} ms")
    fact("it is the function that makes the steps", row[4] == address, row[0])
    fact("calls a second are those of the account",
         low - CALLS <= calls <= high + CALLS, row[0])
    fact("so is the mean", shortest * 0.95 <= mean <= longest * 1.05 + PROBES_MS, row[0])
sys.exit(failed)
