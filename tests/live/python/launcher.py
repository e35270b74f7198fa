# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine without steps whose children are told: launcher.py PIDS

Each line that it reads is a command to run, or "end PID", which ends a child. The id of that child is then a
new line of PIDS."""
import subprocess, sys

children = {}
print('ready', flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == 'end':
        child = children.pop(int(words[1]))
        child.kill()
        child.wait()
    else:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        children[child.pid] = child
    with open(sys.argv[1], 'a') as pids:
        pids.write('%d\n' % child.pid)
for child in children.values():
    child.kill()
    child.wait()
