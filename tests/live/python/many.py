# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A program with sixteen functions, f0 to f15, and a method that twelve classes define, which are called again
and again until it is killed."""
import time

for n in range(16):
    exec(f'def f{n}(): pass')


class Wide:
    def step(self):
        pass


wide = [Wide()] + [type(f'Wide{n}', (Wide,), {'step': eval('lambda self: None')})() for n in range(11)]
print('ready', flush=True)
while True:
    for n in range(16):
        globals()[f'f{n}']()
    for one in wide:
        one.step()
    time.sleep(0.01)
