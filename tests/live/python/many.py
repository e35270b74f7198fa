# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A program with sixteen functions, f0 to f15, which are called again and again until it is killed."""
import time

for n in range(16):
    exec(f'def f{n}(): pass')
print('ready', flush=True)
while True:
    for n in range(16):
        globals()[f'f{n}']()
    time.sleep(0.01)
