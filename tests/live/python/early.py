# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Interpreters that get orders from their first moment on: early.py INTERPRETER LIBRARY DRIVE TIMES

The library's thread is there before the interpreter is. Prints how many ended as ever, how many answered
an order, and how many orders were answered."""
import json, os, subprocess, sys

interpreter, library, drive, times = sys.argv[1:4] + [int(sys.argv[4])]
ended = answered = orders = 0
for n in range(times):
    # Some end at once, in the middle of an order.
    script = 'import json, os, re; print(len(os.__name__))' + ('; import time; time.sleep(0.05)' if n % 2 else '')
    target = subprocess.Popen([interpreter, '-c', script], stdout=subprocess.PIPE,
                              env=dict(os.environ, LD_PRELOAD=library))
    tool = subprocess.Popen([drive, str(target.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)
    tool.stdin.write('wish 0 os:fspath\nwish 1 re:compile\n' + 'resolve\narm\ndisarm\n' * 5)
    tool.stdin.close()
    ended += target.stdout.read() == b'2\n' and target.wait() == 0
    # It would wait for the answers of a process that has ended.
    tool.kill()
    lines = [json.loads(line) for line in tool.stdout if line.endswith('}\n')]
    done = sum(line.get('err') == 0 and 'slots' in line for line in lines)
    answered += done > 0
    orders += done
    tool.wait()
print(ended, answered, orders)
