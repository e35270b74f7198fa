#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""metrics.py FILE EXPRESSION: prints a Python expression over a file of --metrics. It may use

    V       V("steps_total", kind="x"): sum of the values with that name and these labels
    P       rows of $OUT.profile, by event
    B       the histogram of durations: (bound, count of all up to it), in order
"""
import json
import os
import re
import sys

LINE = re.compile(r'ferrum_bpftrace_([a-z_]+)\{(.*)\} ([0-9.]+)\n')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"(?:,|$)')


def main():
    path, expression = sys.argv[1:]
    values = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            match = LINE.fullmatch(line)
            if not line.startswith("# "):
                values.append((match[1], dict(LABEL.findall(match[2])), float(match[3])))

    def value(name, **labels):
        found = [v for n, have, v in values if n == name and labels.items() <= have.items()]
        return sum(found) if found else None

    rows = {}
    if os.path.exists(os.environ["OUT"] + ".profile"):
        with open(os.environ["OUT"] + ".profile", encoding="utf-8") as file:
            for row in map(json.loads, file):
                rows.setdefault(row["event"], []).append(dict(row["shape"], us=row["stage_us"]))
    buckets = [(float(have["le"].replace("+Inf", "inf")), count) for name, have, count in values
               if name == "step_duration_seconds_bucket"]
    try:
        print(eval(expression.replace("\n", " "), {"V": value, "P": rows, "B": buckets}))
    except Exception as error:  # the reader is a test: one line says it all
        print("%s: %s" % (type(error).__name__, error))


main()
