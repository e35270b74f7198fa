#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""query.py EXPRESSION: prints a Python expression over what a run left behind. It may use

    T B     the engine's own account, and the one before its execve
    E W     events of the profile; its last window_prof
    S       steps: step_prof and syscall_prof in one, times under us and six, counts under by
    X       events of the trace
    lines   what the tool said on stderr
    R       the report; table and errors are its calls and failed calls by syscall name, tables is
            table by process
    lost    number of records that were lost
    files   what the report says of files, by output: "PATH", or "PATH (what is wrong)"
    honest  whether each of them is there, and none that it says is not
    total   sums counts of steps, in the form of the engine's account
    near    whether a table is the engine's
    G       escalation_prof by number of step, times under us: those that are shown
    H       the same, those too that are not shown
    cliffs  those of G that are named as a memory cliff
    inefficient  those that are named for more than that, or than an unsteady class
    due     steps that the engine was in trouble in, but for those before their class is known
    troubled  all steps that the engine was in trouble in
    slower  slower(F[, PART]): steps not in trouble that took F times as long as usual for their work, by
            the engine's own clock: the machine's doing, and rightly named
    host, delay  of each step, by its number: ns without a CPU, by the engine's own account, as the
            host of a virtual machine took it, and as it waited for one. With --steady only
    inside  inside(N): what happened in step N, of the trace: its calls
    spent   spent(N): us that step N spent in those
    monotonic_ns  monotonic_ns(TIME): a time of day of the profile, by CLOCK_MONOTONIC

Files are $OUT.profile, $OUT.trace and $OUT.report, and $TMP/truth.json.
"""
import ast
import datetime
import functools
import json
import os
import sys
import time

CATEGORIES = ["mmap", "futex", "ioctl", "read", "write", "other"]
OUT = os.environ["OUT"]
TRUTH = os.environ["TMP"] + "/truth.json"


@functools.lru_cache(maxsize=None)
def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def load_events():
    with open(OUT + ".profile", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load_steps():
    steps = {}
    for row in load_events():
        if row["event"] == "step_prof":
            steps[row["shape"]["step"]] = dict(row["shape"], us=row["stage_us"])
        elif row["event"] == "syscall_prof":
            step = steps[row["shape"]["step"]]
            step["six"] = row["stage_us"]
            step["by"] = {name: {what: row["shape"][name + "_" + what]
                                 for what in ("calls", "errors")} for name in CATEGORIES}
    return list(steps.values())


def load_syscalls(what):
    """The syscalls by process, then by name."""
    return {process["pid"]: {row["name"]: row[what] for row in process["syscalls"] if row[what]}
            for process in load(OUT + ".report")["processes"]}


def add_up(tables):
    names = {name for table in tables for name in table}
    return {name: sum(table.get(name, 0) for table in tables) for name in names}


def load_files():
    return dict(line.split(None, 1) for line in load(OUT + ".report")["files"])


def is_honest():
    return all(os.path.exists(text.split(" (")[0]) != (" (not there: " in text)
               for text in load_files().values())


def total(steps):
    return {name: {what: sum(step["by"][name][what] for step in steps)
                   for what in ("calls", "errors")} for name in CATEGORIES}


def near(table, truth, what):
    """Exactly the engine's count. Only the futex calls in which threads wait at the end are not in
    it. The kernel ends them with an error when it ends the process."""
    waiting = range(len(truth["threads"]))
    return all(table.get(name, 0) - count in (waiting if name == "futex" else (0,))
               for name, count in truth[what].items())


def load_lines():
    with open(OUT + ".err", encoding="utf-8") as file:
        return file.read().splitlines()


def load_all_escalations():
    return {row["shape"]["step"]: dict(row["shape"], us=row["stage_us"])
            for row in load_events() if row["event"] == "escalation_prof"}


def load_escalations():
    return {n: row for n, row in load_all_escalations().items() if "not_shown" not in row}


def find_due(truth):
    """The steps that must be named. A class is judged from its 11th step on, and a step that the
    machine slowed is of another class. What the machine took between two calls looks like work: it
    must not be much of the trouble."""
    other, thread = find_slower(truth, 1.3), truth["threads"][0]
    return {n for n in thread["troubled"] if n - 1 - sum(m < n for m in other) >= 10 and
            10 * thread["taken_ns"][n - 1] <= thread["spans_ns"][n - 1][1]}


def find_slower(truth, factor, usual=0.5):
    """For an engine that is busy by the clock, so that all time but work is about the same in each
    step. usual: which part of the steps had no more of that."""
    thread = truth["threads"][0]
    steps = {n: (ns, 1000 * work_us) for n, (_, ns, work_us) in enumerate(thread["spans_ns"], 1)
             if n not in thread["troubled"]}
    rest = sorted(ns - work_ns for ns, work_ns in steps.values())[int(len(steps) * usual)]
    # What the host of a virtual machine took of the work is part of the work by this clock, but not
    # by that of the thread.
    cpu = thread["cpu_ns"]
    return {n for n, (ns, work_ns) in steps.items()
            if ns >= factor * min(work_ns + rest, cpu[n - 1] or work_ns + rest)}


def find_host(truth):
    """For how long each step was neither on a CPU nor waiting for one, by number; 0 if it may have
    slept, or that was not looked at."""
    thread = truth["threads"][0]
    return {n: max(0, span[1] - cpu - delay) if cpu else 0 for n, (span, cpu, delay) in
            enumerate(zip(thread["spans_ns"], thread["cpu_ns"], thread["delay_ns"]), 1)}


def find_inside(number):
    """The calls of one step, by the trace alone."""
    events = load(OUT + ".trace")
    step, = [x for x in events if x["cat"] == "step" and x["args"]["step"] == number]
    return [x for x in events if x["cat"] == "syscall" and x["tid"] == step["tid"] and
            step["ts"] <= x["ts"] and x["ts"] + x["dur"] <= step["ts"] + step["dur"]]


def to_monotonic_ns(text):
    """Uses the present offset between the clocks, which is also the run's unless somebody sets the
    clock."""
    since = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) - datetime.datetime(
        1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (since // datetime.timedelta(microseconds=1) * 1000 - time.time_ns() +
            time.clock_gettime_ns(time.CLOCK_MONOTONIC))


makers = {
    "T": lambda: load(TRUTH),
    "B": lambda: load(TRUTH + ".before-exec"),
    "E": load_events,
    "W": lambda: [row for row in load_events() if row["event"] == "window_prof"][-1]["shape"],
    "S": load_steps,
    "X": lambda: load(OUT + ".trace"),
    "R": lambda: load(OUT + ".report"),
    "lost": lambda: load(OUT + ".report")["lost"]["total"],
    "files": load_files,
    "honest": is_honest,
    "lines": load_lines,
    "tables": lambda: load_syscalls("calls"),
    "table": lambda: add_up(load_syscalls("calls").values()),
    "errors": lambda: add_up(load_syscalls("errors").values()),
    "total": lambda: total,
    "near": lambda: near,
    "G": load_escalations,
    "H": load_all_escalations,
    "due": lambda: find_due(load(TRUTH)),
    "troubled": lambda: set(load(TRUTH)["threads"][0]["troubled"]),
    "inefficient": lambda: {n for n, row in load_escalations().items()
                            if row["escalation.reason"] not in ("cv_exceeded", "memory_cliff")},
    "cliffs": lambda: {n for n, row in load_escalations().items()
                       if row["escalation.reason"] == "memory_cliff"},
    "slower": lambda: lambda factor, usual=0.5: find_slower(load(TRUTH), factor, usual),
    "host": lambda: find_host(load(TRUTH)),
    "delay": lambda: dict(enumerate(load(TRUTH)["threads"][0]["delay_ns"], 1)),
    "inside": lambda: find_inside,
    "monotonic_ns": lambda: to_monotonic_ns,
    "spent": lambda: lambda number: sum(call["dur"] for call in find_inside(number)),
    "CATEGORIES": lambda: CATEGORIES,
}


def explain(tree, namespace):
    """Prints both sides of a comparison that does not hold."""
    parts = tree.body.values if isinstance(tree.body, ast.BoolOp) else [tree.body]
    for part in parts:
        sides = [part.left] + part.comparators if isinstance(part, ast.Compare) else [part]
        values = [eval(compile(ast.Expression(side), "side", "eval"), namespace) for side in sides]
        print("  " + "\n  ".join(repr(value)[:600] for value in values))


def main():
    tree = ast.parse(sys.argv[1].replace("\n", " "), mode="eval")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    try:
        namespace = {name: makers[name]() for name in used if name in makers}
        value = eval(compile(tree, "expression", "eval"), namespace)
        print(value)
        if value is False:
            explain(tree, namespace)
    except Exception as error:  # the reader is a test: one line says it all
        print("%s: %s" % (type(error).__name__, error))


main()
