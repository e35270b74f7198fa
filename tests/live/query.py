#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""query.py EXPRESSION: prints a Python expression over what a run left behind. It may use

    T B     the engine's own account, and the one before its execve
    E W     events of the profile; its last window_prof
    S       steps: step_prof and syscall_prof in one, times under us and six, counts under by
    X       events of the trace
    R       the report; table and errors are its calls and failed calls by syscall name, tables is
            table by process
    total   sums counts of steps, in the form of the engine's account
    near    whether a table is the engine's

Files are $OUT.profile, $OUT.trace and $OUT.report, and $TMP/truth.json.
"""
import ast
import json
import os
import sys

CATEGORIES = ["mmap", "futex", "ioctl", "read", "write", "other"]
OUT = os.environ["OUT"]
TRUTH = os.environ["TMP"] + "/truth.json"


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
    """By process, then by name."""
    return {process["pid"]: {row["name"]: row[what] for row in process["syscalls"] if row[what]}
            for process in load(OUT + ".report")["processes"]}


def add_up(tables):
    names = {name for table in tables for name in table}
    return {name: sum(table.get(name, 0) for table in tables) for name in names}


def total(steps):
    return {name: {what: sum(step["by"][name][what] for step in steps)
                   for what in ("calls", "errors")} for name in CATEGORIES}


def near(table, truth, what):
    """
    Exactly what the engine counted. Only its threads that wait in a futex call at the end are not
    counted by it, though the kernel ends that call, with an error, when it ends the process.
    """
    waiting = range(len(truth["threads"]))
    return all(table.get(name, 0) - count in (waiting if name == "futex" else (0,))
               for name, count in truth[what].items())


makers = {
    "T": lambda: load(TRUTH),
    "B": lambda: load(TRUTH + ".before-exec"),
    "E": load_events,
    "W": lambda: [row for row in load_events() if row["event"] == "window_prof"][-1]["shape"],
    "S": load_steps,
    "X": lambda: load(OUT + ".trace"),
    "R": lambda: load(OUT + ".report"),
    "tables": lambda: load_syscalls("calls"),
    "table": lambda: add_up(load_syscalls("calls").values()),
    "errors": lambda: add_up(load_syscalls("errors").values()),
    "total": lambda: total,
    "near": lambda: near,
    "CATEGORIES": lambda: CATEGORIES,
}
def explain(tree, namespace):
    """What stands on the sides of a comparison that does not hold."""
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
