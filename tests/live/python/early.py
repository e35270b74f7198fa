# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Interpreters that get orders from their first moment on: early.py INTERPRETER LIBRARY DRIVE TIMES

The library's thread is there before the interpreter is. Every other interpreter ends at once, in the
middle of an order; the others wait until all orders are answered. Prints how many ended as ever, and how
many orders those that waited have not answered."""
import json, os, subprocess, sys

ORDERS = 15


def main():
    interpreter, library, drive, times = sys.argv[1:4] + [int(sys.argv[4])]
    ended = unanswered = 0
    for n in range(times):
        waits = n % 2
        script = 'import json, os, re, sys; print(len(os.__name__))' + ('; sys.stdin.read()' if waits else '')
        target = subprocess.Popen([interpreter, '-c', script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=dict(os.environ, LD_PRELOAD=library))
        tool = subprocess.Popen([drive, str(target.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True)
        tool.stdin.write('wish 0 os:fspath\nwish 1 re:compile\n' + 'resolve\narm\ndisarm\n' * (ORDERS // 3))
        tool.stdin.close()
        if waits:
            answers = [json.loads(line) for line in tool.stdout]
            unanswered += ORDERS - sum('slots' in answer and answer['err'] == 0 for answer in answers)
            target.stdin.close()
        ended += target.stdout.read() == b'2\n' and target.wait() == 0
        # It would wait for the answers of a process that has ended.
        tool.kill()
        tool.wait()
    print(ended, unanswered)


main()
