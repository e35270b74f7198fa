# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Loops of calls: reads "LOOP ROUNDS", and prints the fewest nanoseconds that one call took in a round; of
"asleep ROUNDS" the median of single calls, each after 1 ms asleep.

A round takes less than a millisecond, also where each call is traced: on a busy machine one that is longer
than the time between two switches always has the time of others in it."""
import statistics, sys, time

CALLS = 500


class Batch:
    def __init__(self):
        self.tokens, self.requests, self.last, self.first = 89, {1: 1, 2: 1}, 3, 4


class Core:
    def step(self, batch):
        pass


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


core, batch = Core(), Batch()


def step():
    for _ in range(CALLS):
        core.step(batch)
    return CALLS


def other():
    """21,891 calls of a function that is not armed."""
    fibonacci(20)
    return 21891


def asleep(rounds):
    took = []
    for _ in range(rounds):
        time.sleep(0.001)
        begin = time.perf_counter_ns()
        core.step(batch)
        took.append(time.perf_counter_ns() - begin)
    return statistics.median(took)


for line in sys.stdin:
    loop, rounds = line.split()
    if loop == "asleep":
        print(asleep(int(rounds)), flush=True)
        continue
    loop, fewest = globals()[loop], 1e9
    for _ in range(int(rounds)):
        begin = time.perf_counter_ns()
        calls = loop()
        fewest = min(fewest, (time.perf_counter_ns() - begin) / calls)
    print(fewest, flush=True)
