# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine whose batches are of all kinds: objects with numbers, with slots, with a property or a __getattr__,
and no objects with attributes at all: attributes.py TRUTH STEPS

TRUTH has what is to be read of the batch of each step, None where nothing can be, and how often code of the
program ran for that."""
import json, os, select, sys, time

ran = []


class Batch:
    def __init__(self, tokens, requests):
        self.tokens, self.requests = tokens, dict.fromkeys(range(requests))

    @property
    def costly(self):
        ran.append('property')
        return 7


class Slotted:
    __slots__ = ('tokens', 'requests')

    def __init__(self, tokens):
        self.tokens = tokens


class Sly:
    def __getattr__(self, name):
        ran.append(name)
        return 5


class Count(int):
    pass


class Step:
    def step(self, batch):
        return batch


# What is to be seen of tokens, len(requests) and costly.
BATCHES = [(Batch(89, 55), [89, 55, None]), (Slotted(4), [4, None, None]), (Sly(), [None, None, None]),
           (None, [None, None, None]), (3, [None, None, None]), ({'tokens': 1}, [None, None, None]),
           (Batch(1 << 70, 0), [None, 0, None]), (Batch(-(1 << 62), 1), [-(1 << 62), 1, None]),
           (Batch(1.5, 2), [None, 2, None]), (Batch(True, 3), [1, 3, None]), (Batch(Count(6), 4), [6, 4, None])]
steps, expected = int(sys.argv[2]), []
print('ready', flush=True)
select.select([sys.stdin], [], [])
sys.stdin.readline()
for n in range(steps):
    batch, numbers = BATCHES[n % len(BATCHES)]
    Step().step(batch)
    expected.append(numbers)
    time.sleep(0.002)
with open(sys.argv[1] + '.new', 'w') as file:
    json.dump({'expected': expected, 'ran': ran}, file)
os.rename(sys.argv[1] + '.new', sys.argv[1])
