#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The lines of `make bench` on stdin as a Markdown table for docs/overhead.md."""
import json
import sys

print("| figure | measured | ratio | wanted |")
print("|---|---|---|---|")
for line in sys.stdin:
    if not line.startswith("{"):
        continue
    row = json.loads(line)
    ratio = "%.2f×" % row["ratio"] if "ratio" in row else ""
    if "above" in row:
        ratio += ", %+.0f ns" % row["above"]
    wanted = ""
    if "limit" in row:
        unit = "×" if "ratio" in row else "" if row["unit"].startswith("of ") else " " + row["unit"]
        wanted = "≤ %g%s" % (row["limit"], unit)
    if "least" in row:
        wanted = "≥ %g %s" % (row["least"], row["unit"])
    if not row.get("ok", True):
        wanted += " **missed**"
    print("| %s | %g %s | %s | %s |" % (row["bench"], row["value"], row["unit"], ratio, wanted))
