#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""list_calls.py EXPRESSION: prints a Python expression over what --list-steps -v said. It may use

    T       the engine's own account: how many us each call took, 0 if it was left by longjmp
    names   what stands in the list for --step, likeliest first
    row     row(NAME): its line, as (mean in ms or a text, how its calls end, what follows the name)
    calls   calls(NAME): how many were counted
    timed   timed(NAME): how many of them have a duration
    longest longest(NAME): the account of as many calls, the longest ones

Files are $TMP/list, $TMP/err and $TMP/truth.json.
"""
import json
import os
import re
import sys

TMP = os.environ["TMP"]


def read(name):
    with open(TMP + "/" + name, encoding="utf-8") as file:
        return file.read()


T = json.loads(read("truth.json"))
ROWS = {}
for line in read("list").splitlines()[1:]:
    found = re.match(r" *[\d.]+\+?  +(-|not known|too often|[\d.]+ ms)  (.{13})  (\S+)  (.*)", line)
    if found:
        mean = found[1].split()[0] if found[1].endswith(" ms") else None
        ROWS[found[3]] = (float(mean) if mean else found[1], found[2].strip(), found[4])
COUNTS = {name: (int(begun), int(ended)) for name, begun, ended in
          re.findall(r"debug: (\S+): (\d+) calls, (\d+) timed", read("err"))}


def timed(name):
    return COUNTS[name][1]


def longest(name):
    return sorted(T[name])[-timed(name):]


print(eval(sys.argv[1], {
    "T": T, "names": list(ROWS), "row": ROWS.get, "calls": lambda name: COUNTS[name][0],
    "timed": timed, "longest": longest}))
