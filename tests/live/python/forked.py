# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine that was forked, as multiprocessing's method "fork" does it: forked.py TRUTH STEPS

Prints the child's pid; the child waits for its go, makes its steps and writes TRUTH."""
import json, os, select, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'packages'))
from vllm.v1.engine.core import EngineCore

core = EngineCore()
child = os.fork()
if child:
    print(child, flush=True)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
select.select([sys.stdin], [], [])
sys.stdin.readline()
for n in range(int(sys.argv[2])):
    core.scheduler.running = [None] * (n % 5)
    core.step_fn()
    time.sleep(0.001)
with open(sys.argv[1] + '.new', 'w') as file:
    json.dump({'calls': core.calls, 'requests': core.requests}, file)
os.rename(sys.argv[1] + '.new', sys.argv[1])
