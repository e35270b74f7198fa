#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Puts real output into README.md, between its <!-- NAME --> and <!-- /NAME --> marks.

usage: tests/fill_readme.py NAME FILE… [NAME FILE…]…, each NAME being one of
    bench    what `make bench` printed
    load     what `make BENCH=load bench` printed
    report   what `make demo-llama` printed
    jsonl    the llama_profile.jsonl it left
    gpu      what `make demo-gpu` printed
    doctor   what `ferrum-bpftrace doctor PID` printed, its command line before it as "$ …"
    fuzz     what `make fuzz` printed; of several files it is the sum
    kernels  the files build/kernels/table-ARCH.md of `make test-kernels`
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


def bench_of(path):
    return subprocess.run([sys.executable, "tests/bench/table.py"], stdin=open(path),
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def quoted(text):
    return "```\n" + text.rstrip() + "\n```"


def events_of(path):
    """Of an escalated step: it is in three lines."""
    lines = open(path).read().split("\n")
    last = next(i for i, line in enumerate(lines) if '"event":"escalation_prof"' in line)
    return "```json\n" + "\n".join(lines[last - 2:last + 1]) + "\n```"


def doctor_of(path):
    """Without the folders of the machine it was made on."""
    return re.sub(r"/\S*/(build/)", r"\1", open(path).read())


def kernels_of(*paths):
    """One table of several, with a column for what is in their names."""
    rows = []
    for path in paths:
        arch = re.search(r"table-(\w+)\.md$", path).group(1)
        lines = open(path).read().splitlines()
        if not rows:
            rows = ["| arch " + lines[0], "|---" + lines[1]]
        rows += ["| %s %s" % (arch, line) for line in lines[2:]]
    return "\n".join(rows)


def fuzz_of(*paths):
    """With what tests/fuzz/README.md says of each target."""
    rows = {}
    for line in open("tests/fuzz/README.md"):
        target = re.match(r"\| `(\w+)` \| (.*) \|$", line)
        if target:
            rows[target.group(1)] = [target.group(2), 0, 0]
    for path in paths:
        for target, runs, edges in re.findall(
                r"^ok - (\w+): (\d+) runs(?: in \d+ s of CPU)?, (\d+) edges", open(path).read(), flags=re.M):
            row = rows[target]
            row[1:] = [row[1] + int(runs), max(row[2], int(edges))]
    return "\n".join(["| target | what it takes | runs | edges |", "|---|---|---|---|"] +
                     ["| `%s` | %s | %s | %s |" % (name, what, format(runs, ","), format(edges, ","))
                      for name, (what, runs, edges) in rows.items()])


MAKERS = {
    "bench": bench_of,
    "load": bench_of,
    "report": lambda path: quoted(report_of(path)),
    "jsonl": events_of,
    "gpu": lambda path: quoted(gpu_parts_of(path)),
    "doctor": lambda path: quoted(doctor_of(path)),
    "fuzz": fuzz_of,
    "kernels": kernels_of,
}


def main():
    text = open("README.md").read()
    words = sys.argv[1:]
    while words:
        name, paths = words.pop(0), []
        while words and words[0] not in MAKERS:
            paths.append(words.pop(0))
        text = fill(text, name, MAKERS[name](*paths))
    open("README.md", "w").write(text)


main()
