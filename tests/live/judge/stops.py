#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""stops.py PROFILE [TRUTH]: who stopped the steps that are named for it. Prints

    REASON:TRACER:WHOM …

each once. TRACER is the tracer's name, "-" if none is told, "?" if it has no pid, or SIGNAL/NAME of
who sent the signal; WHOM is "step", or
"other" for another thread of the process. The step's own line must say the same as its escalation."""
import json
import sys


def who(shape):
    name = shape.get("stop_tracer_name", "-")
    if name != "-" and not shape.get("stop_tracer"):
        name = "?"
    if "stop_signal" in shape:
        name = f"{shape['stop_signal']}/{shape.get('stop_sender_name', '-')}"
        if not shape.get("stop_sender"):
            name += "?"
    whom = "other" if "stop_tid" in shape else "step"
    return f"{shape.get('stop_reason')}:{name}:{whom}"


with open(sys.argv[1], encoding="utf-8") as file:
    rows = [json.loads(line) for line in file]
steps = {row["shape"]["step"]: row for row in rows if row["event"] == "step_prof"}
named = [row for row in rows if row["event"] == "escalation_prof" and row["shape"]["cause"] == "stopped"]
for row in named:
    step = steps[row["shape"]["step"]]
    if who(step["shape"]) != who(row["shape"]):
        sys.exit(f"step {row['shape']['step']}: {who(step['shape'])}, and {who(row['shape'])}")
print(" ".join(sorted({who(row["shape"]) for row in named})))
