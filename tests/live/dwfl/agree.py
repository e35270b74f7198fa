#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""agree.py NAME COUNT LOG: whether libdwfl and the tool found the same calls (tests/live/dwfl/check.c)."""
import collections
import json
import sys


def main(name, count, log):
    with open(log, encoding="utf-8") as file:
        stacks = [json.loads(line) for line in file]
    verdicts = collections.Counter(s["verdict"] for s in stacks)
    wrong = [s for s in stacks if s["verdict"] != "equal"]
    good = not wrong and len(stacks) >= int(count)
    frames = sum(len(s["ours"]) for s in stacks)
    print(f"{'ok' if good else 'not ok'} - {name}: libdwfl finds the same calls")
    print(f"# {name}: {len(stacks)} stacks, {frames} calls, {dict(verdicts)}")
    for stack in wrong[:3]:
        print("#", stack)
    return 0 if good else 1


sys.exit(main(*sys.argv[1:]))
