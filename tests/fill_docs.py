#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Puts real output into README.md and docs/*.md, between the <!-- NAME --> and <!-- /NAME --> marks.

usage: tests/fill_docs.py NAME FILE… [NAME FILE…]…, each NAME being one of
    bench    what `make bench` printed, or `make BENCH=PART bench`
    load     what `make BENCH=load bench` printed
    report   what `make demo-llama` printed; also fills report-short
    jsonl    the llama_profile.jsonl it left
    gpu      what `make demo-gpu` printed
    vllm     what `make demo-vllm` printed, in short
    doctor   what `ferrum-bpftrace doctor PID` printed, its command line before it as "$ …"; also
             fills doctor-short
    fuzz     what `make fuzz` printed; of several files it is the sum
    kernels  the files build/kernels/table-ARCH.md of `make test-kernels`
"""
import glob
import re
import subprocess
import sys


def fill(pages, name, content):
    """Fills the marks in the only page that has them."""
    marks = "<!-- %s -->" % name, "<!-- /%s -->" % name
    pattern = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), flags=re.S)
    found = [page for page, text in pages.items() for _ in pattern.findall(text)]
    if len(found) != 1:
        raise SystemExit("fill_docs: %s: %d places, one was expected" % (name, len(found)))
    pages[found[0]] = pattern.sub(lambda _: "%s\n%s\n%s" % (marks[0], content.rstrip(), marks[1]),
                                  pages[found[0]])


def quoted(lines):
    return "```\n" + "\n".join(lines).rstrip() + "\n```"


def report_of(path):
    """The report from the command on, without this machine's directories and the output of time(1).
    """
    lines = open(path).read().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("$ "))
    text = re.sub(r"\n+real\t.*\nuser\t.*\nsys\t.*", "", "\n".join(lines[start:])).rstrip()
    return re.sub(r"/[^\s:]*/(tests/e2e|build/e2e|model)", r"\1", text).split("\n")


def block(lines, start):
    """The lines from the first match to the next empty line."""
    first = next(i for i, line in enumerate(lines) if re.match(start, line))
    return lines[first:lines.index("", first) if "" in lines[first:] else None]


def short_report_of(path):
    """The parts that are read first: headline, the first cause with its evidence and stack, and the times of
    the first step function. Of llama.cpp at most 30 lines (tests/lint/docs.sh)."""
    lines = report_of(path)
    causes = block(lines, r"  most expensive causes")
    rest = next(i for i, line in enumerate(causes) if re.match("     (ended in|held in|advice) ", line))
    headline = block(lines, r"[\d,]+ steps of ")
    kind = block(lines, headline[0].split()[3] + "$")
    end = next(i for i, line in enumerate(kind) if re.match("  (slow steps|gap before)", line))
    kind = [line for line in kind[:end] if " <0.1 % " not in line]
    # The slowest step, without the lines about it.
    kind = kind[:next(i for i, line in enumerate(kind) if line.startswith("  slowest ")) + 2]
    return ([lines[0]] + headline + [""] + block(lines, "Escalations: ")[:1] + causes[:rest] + [""] + kind)


def gpu_parts_of(path):
    """The command, the first alert if there is one, the headline, and the GPU table."""
    lines = report_of(path)
    alert = [line for line in lines if re.match(r"\d\d:\d\d:\d\d #", line)][:1]
    table = block(lines, r"  GPU +per step")
    end = next(i for i, line in enumerate(table) if line.startswith("  GPU work"))
    return [lines[0]] + alert + ["…"] + block(lines, r"[\d,]+ steps of ") + ["…"] + table[:end]


def bench_of(path, page, mark):
    """Replaces rows of the page by rows of path for the same figures. Other rows stay."""
    made = subprocess.run([sys.executable, "tests/bench/table.py"], stdin=open(path),
                          stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    text = open(page).read()
    rows = text[text.index("<!-- %s -->" % mark):text.index("<!-- /%s -->" % mark)].splitlines()[1:]
    names = [row.split(" | ")[0] for row in rows]
    for number, row in enumerate(made):
        name = row.split(" | ")[0]
        if name in names:
            rows[names.index(name)] = row
            continue
        after = names.index(made[number - 1].split(" | ")[0]) + 1 if number else 0
        rows.insert(after, row)
        names.insert(after, name)
    return "\n".join(rows)


def events_of(path):
    """The three events of an escalated step."""
    lines = open(path).read().split("\n")
    last = next(i for i, line in enumerate(lines) if '"event":"escalation_prof"' in line)
    return "```json\n" + "\n".join(lines[last - 2:last + 1]) + "\n```"


def doctor_of(path):
    """The report without this machine's directories."""
    return re.sub(r"/\S*/(build/)", r"\1", open(path).read()).rstrip().split("\n")


def short_doctor_of(path):
    lines = doctor_of(path)
    trial = next(i for i, line in enumerate(lines) if re.match(r"  \w+ +trial ", line))
    end = next(i for i, line in enumerate(lines[trial + 1:], trial + 1) if line[8] != " ")
    process = next(i for i, line in enumerate(lines) if line.startswith("Process "))
    return lines[:4] + ["  …"] + lines[trial:end] + ["  …", ""] + lines[process:]


def kernels_of(*paths):
    """Merges several tables into one, with a column for the part that their names have."""
    rows = []
    for path in paths:
        arch = re.search(r"table-(\w+)\.md$", path).group(1)
        lines = open(path).read().splitlines()
        if not rows:
            rows = ["| arch " + lines[0], "|---" + lines[1]]
        rows += ["| %s %s" % (arch, line) for line in lines[2:]]
    return "\n".join(rows)


def fuzz_of(*paths):
    """Adds the descriptions of the targets from tests/fuzz/README.md."""
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
    return "\n".join(["| target | input | runs | edges |", "|---|---|---|---|"] +
                     ["| `%s` | %s | %s | %s |" % (name, what, format(runs, ","), format(edges, ","))
                      for name, (what, runs, edges) in rows.items()])


MAKERS = {
    "bench": {"bench": lambda path: bench_of(path, "docs/overhead.md", "bench")},
    "load": {"load": lambda path: bench_of(path, "docs/promises.md", "load")},
    "report": {"report": lambda path: quoted(report_of(path)),
               "report-short": lambda path: quoted(short_report_of(path))},
    "jsonl": {"jsonl": events_of},
    "gpu": {"gpu": lambda path: quoted(gpu_parts_of(path))},
    "vllm": {"vllm": lambda path: quoted(short_report_of(path))},
    "doctor": {"doctor": lambda path: quoted(doctor_of(path)),
               "doctor-short": lambda path: quoted(short_doctor_of(path))},
    "fuzz": {"fuzz": fuzz_of},
    "kernels": {"kernels": kernels_of},
}


def main():
    pages = {path: open(path).read() for path in ["README.md"] + sorted(glob.glob("docs/*.md"))}
    words = sys.argv[1:]
    if not words or words[0] not in MAKERS:
        raise SystemExit(__doc__)
    while words:
        name, paths = words.pop(0), []
        while words and words[0] not in MAKERS:
            paths.append(words.pop(0))
        for mark, maker in MAKERS[name].items():
            fill(pages, mark, maker(*paths))
    for path, text in pages.items():
        open(path, "w").write(text)


main()
