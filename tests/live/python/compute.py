# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine whose every 40th step computes for 80 ms of its CPU time in slow_part(), which others do not call. Says
ready, waits for its go, makes STEPS steps, and writes the numbers of the slow ones: compute.py TRUTH STEPS"""
import json, select, sys, time

COMPUTED_S = 0.08


def usual_part():
    total = 0
    for i in range(20000):
        total += i
    return total


def slow_part():
    table = {}
    end = time.thread_time() + COMPUTED_S
    while time.thread_time() < end:
        for i in range(2000):
            table[i] = i
    return table


class Engine:
    def step(self, n):
        usual_part()
        if n % 40 == 39:
            slow_part()
        return n


engine = Engine()
print('ready', flush=True)
select.select([sys.stdin], [], [])
sys.stdin.readline()
for n in range(int(sys.argv[2])):
    engine.step(n)
    time.sleep(0.001)
json.dump({'slow': [n + 1 for n in range(int(sys.argv[2])) if n % 40 == 39]}, open(sys.argv[1], 'w'))
