# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What it costs to find out who sends signals."""
import statistics

from harness import Tool, Worker, figure

ROUNDS = 7


def bench_signals():
    """A signal of a process that is not traced. No system call is traced either, so what the tool
    adds is the program that sees all signals of the machine."""
    target, neighbor = Worker(), Worker()
    command = "loop signal 1 20 5000"
    added = []
    for _ in range(ROUNDS):
        values = {}
        for explain in ("off", "auto"):
            tool = Tool(target.pid, "--step", "bench_step", "--detail", "probes", "--explain", explain)
            values[explain] = neighbor.loop(command)
            tool.stop()
        added.append(values["auto"] - values["off"])
    bare = neighbor.loop(command)
    figure("signals: a signal to itself, bare", bare, "ns")
    figure("signals: added to a signal of a neighbor", statistics.median(added), "ns", limit=100)
    target.close()
    neighbor.close()
