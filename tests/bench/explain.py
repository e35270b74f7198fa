# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What it costs to find out who sends signals, and whether --explain costs what it announces."""
import statistics
import time

from harness import Tool, Worker, figure

ROUNDS = 7
SAMPLES_HZ = 199  # of a thread's CPU time: user/stream/sampler.h


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


def announced_ns(report, kinds):
    """What the report says that an event costs, all kinds together."""
    rows = {row["what"]: row["per_event_ps"] for row in report["cost"]["explain"]}
    return sum(rows[kind] for kind in kinds) / 1000


def measure_price(worker, target, command, kinds):
    """What --explain always adds to an event of worker, and what it announced: medians of pairs."""
    added, announced = [], []
    for _ in range(ROUNDS):
        values = {}
        for explain in ("off", "always"):
            tool = Tool(target.pid, "--step", "bench_step", "--explain", explain)
            # A thread is known from its first step on.
            target.ask("loop getppid 1 20 1000")
            time.sleep(0.1)
            values[explain] = worker.loop(command)
            report = tool.stop()
        added.append(values["always"] - values["off"])
        announced.append(announced_ns(report, kinds))
    return statistics.median(added), statistics.median(announced)


def measure_sample(target):
    """The same for a sample of a thread that computes: the time in which that did not go on."""
    added, announced = measure_price(target, target, "gaps 3000", ("samples",))
    return added / SAMPLES_HZ, announced


def tell_price(name, prices, limit):
    """limit: of actual to announced. What costs less than announced does nobody harm."""
    added, announced = prices
    figure("explain: %s, added; %.0f ns announced" % (name, announced), added, "ns",
           ratio=added / announced, limit=limit)


def bench_explain():
    """A context switch with its wake-up, of threads that are not traced; a page fault of a step; and a
    sample of a step that computes."""
    target, neighbor = Worker(), Worker()
    tell_price("a context switch", measure_price(neighbor, target, "switches 200000",
                                                 ("switches", "wakes")), 1.3)
    tell_price("a page fault", measure_price(target, target, "faults 200000", ("faults",)), 1.3)
    tell_price("a sample", measure_sample(target), 1.3)
    target.close()
    neighbor.close()
