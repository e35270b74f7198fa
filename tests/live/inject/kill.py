#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Kills a program at random moments of its life.

    kill.py SEED ROUNDS COMMAND...

A moment lies between its start and what it takes when it is left alone: measured at first, and less
each time that it had ended before, more each time that it had not. Prints how often it was killed, how
often it had ended before, and what it took at first, in us.
"""
import os
import random
import subprocess
import sys
import time


def start():
    return subprocess.Popen(sys.argv[3:], stdout=subprocess.DEVNULL)


def measure():
    began = time.monotonic()
    if start().wait() != 0:
        sys.exit('it does not end well by itself')
    return time.monotonic() - began


def main():
    chance = random.Random(int(sys.argv[1]))
    measured = whole = sorted(measure() for _ in range(5))[2]
    killed = ended = 0
    for _ in range(int(sys.argv[2])):
        until = time.monotonic() + chance.random() * whole
        process = start()
        # time.sleep() never sleeps less than asked for, and the last part must be exact.
        if until - time.monotonic() > 0.001:
            time.sleep(until - time.monotonic() - 0.0005)
        while time.monotonic() < until:
            pass
        process.kill()
        if process.wait() == -9:
            killed += 1
            whole *= 1.02
        else:
            ended += 1
            whole *= 0.9
    print(killed, ended, round(measured * 1e6))


if __name__ == '__main__':
    os.setpriority(os.PRIO_PROCESS, 0, -10)
    main()
