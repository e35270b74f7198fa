# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Sends SIGUSR2 to a server that counts them, each when the one before it was handled: two that
wait at once would be one.

usage: signals.py PROCESS PORT COUNT
"""
import os
import signal
import sys
import time
import urllib.request


def main():
    process, port, count = (int(argument) for argument in sys.argv[1:])

    def handled():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/signals", timeout=60) as answer:
            return int(answer.read())

    before = handled()
    for number in range(1, count + 1):
        os.kill(process, signal.SIGUSR2)
        deadline = time.monotonic() + 20
        while handled() - before < number and time.monotonic() < deadline:
            time.sleep(0.002)
        if handled() - before != number:
            break
        time.sleep(0.01)
    got = handled() - before
    print(f"{'ok' if got == count else 'not ok'} - every signal is handled once")
    print(f"# {got} of {count} signals")


main()
