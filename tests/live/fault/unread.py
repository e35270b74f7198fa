#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""unread.py COMMAND...: becomes the command, whose stderr is a terminal that nobody reads."""
import fcntl
import os
import select
import struct
import sys
import termios

leader, follower = os.openpty()
fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
command = os.pidfd_open(os.getpid())
child = os.fork()
if not child:
    # Keeps the terminal open until the command ends, and is no child of it.
    if os.fork():
        os._exit(0)
    os.dup2(leader, 3)
    os.dup2(command, 4)
    for fd in (0, 1, 2):
        os.close(fd)
    os.closerange(5, 1024)
    select.select([4], [], [])
    os._exit(0)
os.waitpid(child, 0)
os.dup2(follower, 2)
os.execvp(sys.argv[1], sys.argv[1:])
