# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A service manager's socket: writes what a service sends to a file, a line for each datagram.

usage: watch_notify.py SOCKET FILE; a name that begins with @ is abstract
"""
import socket
import sys

name, path = sys.argv[1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener, open(path, "w", 1) as out:
    listener.bind("\0" + name[1:] if name[0] == "@" else name)
    out.write("listening\n")
    while True:
        out.write(listener.recv(65536).decode().replace("\n", " ") + "\n")
