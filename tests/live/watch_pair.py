# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""How much longer steps of one process take than those of its twin, in percent: two workers of the
bench make steps in turns, of which the first one is traced. The median of all pairs, less that of
pairs from before it was.

usage: watch_pair.py WORKER SECONDS PIDS
"""
import statistics
import subprocess
import sys
import time

worker, seconds, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
COMMAND = "push getppid 1 8 80000\n"


class Worker:
    def __init__(self):
        self.process = subprocess.Popen([worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.pid = int(self.process.stdout.readline().split()[1])

    def step_ns(self):
        self.process.stdin.write(COMMAND)
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def pairs(first, second, until):
    ratios = []
    while time.monotonic() < until or len(ratios) < 4:
        if len(ratios) % 2:
            other = second.step_ns()
            ratios.append(first.step_ns() / other)
        else:
            own = first.step_ns()
            ratios.append(own / second.step_ns())
        # Most of the time they leave the machine to the engine.
        time.sleep(0.3)
    return ratios


first, second = Worker(), Worker()
before = pairs(first, second, time.monotonic() + min(seconds / 4, 600))
with open(path, "w") as file:
    file.write("%d %d\n" % (first.pid, second.pid))
after = pairs(first, second, time.monotonic() + seconds)
added = (statistics.median(after) / statistics.median(before) - 1) * 100
print("%.3f %% longer, by %d pairs and %d before" % (added, len(after), len(before)))
