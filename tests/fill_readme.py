#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Puts real output into README.md, between its <!-- NAME --> and <!-- /NAME --> marks.

usage: tests/fill_readme.py BENCH REPORT PROFILE GPU
BENCH is the output of `make bench`, REPORT that of `make demo-llama`, PROFILE the
llama_profile.jsonl it leaves, and GPU the output of `make demo-gpu`.
"""
import re
import subprocess
import sys


def fill(text, name, content):
    marks = "<!-- %s -->" % name, "<!-- /%s -->" % name
    pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
    filled, count = re.subn(pattern, lambda _: "%s\n%s\n%s" % (marks[0], content.rstrip(), marks[1]),
                            text, flags=re.S)
    if count != 1:
        raise SystemExit("fill_readme: %s: %d places, one was expected" % (name, count))
    return filled


def report_of(path):
    """From the command on, without the folders of the machine it was made on."""
    lines = open(path).read().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("$ "))
    text = "\n".join(lines[start:])
    return re.sub(r"/[^\s:]*/(tests/e2e|build/e2e|model)", r"\1", text)


def gpu_parts_of(path):
    """The command, the first alert if there is one, the headline, and what the GPU table says."""
    lines = report_of(path).split("\n")
    alert = [line for line in lines if line.startswith("step ")][:1]
    headline = next(i for i, line in enumerate(lines) if re.match(r"[\d,]+ steps of ", line))
    table = next(i for i, line in enumerate(lines) if re.match(r"  GPU +per step", line))
    end = next(i for i, line in enumerate(lines) if line.startswith("  GPU work"))
    return "\n".join([lines[0]] + alert + ["…"] + lines[headline:lines.index("", headline)] + ["…"] +
                     lines[table:end])


def main():
    bench, report, profile, gpu = sys.argv[1:]
    text = open("README.md").read()
    table = subprocess.run([sys.executable, "tests/bench/table.py"], stdin=open(bench),
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = open(profile).read().split("\n")
    text = fill(text, "bench", table)
    text = fill(text, "report", "```\n" + report_of(report) + "```")
    text = fill(text, "gpu", "```\n" + gpu_parts_of(gpu) + "\n```")
    # Of an escalated step: it is in three lines.
    last = next(i for i, line in enumerate(lines) if '"event":"escalation_prof"' in line)
    text = fill(text, "jsonl", "```json\n" + "\n".join(lines[last - 2:last + 1]) + "\n```")
    open("README.md", "w").write(text)


main()
