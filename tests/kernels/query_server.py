#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""query_server.py SOCKET: in a guest, answers what tests ask query.py. An interpreter takes seconds to
start where every instruction is emulated, a fork of one that runs does not; see python3.c."""
# Modules that query.py imports are loaded here already.
import ast  # pylint: disable=unused-import
import functools  # pylint: disable=unused-import
import json  # pylint: disable=unused-import
import os
import signal
import socket
import sys
import traceback

QUERY = "tests/live/query.py"


def answer(connection, code):
    """A question is OUT, TMP and the expression, each ending with a zero byte."""
    with connection.makefile("rb") as file:
        out, tmp, expression = file.read().decode().split("\0")[:3]
    os.environ.update(OUT=out, TMP=tmp)
    os.dup2(connection.fileno(), 1)
    os.dup2(connection.fileno(), 2)
    sys.argv = [QUERY, expression]
    try:
        exec(code, {"__name__": "__main__"})
    except Exception:  # as an interpreter of its own would
        traceback.print_exc()
    sys.stdout.flush()


def main():
    with open(QUERY, encoding="utf-8") as file:
        code = compile(file.read(), QUERY, "exec")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[1])
    server.listen()
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            try:
                answer(connection, code)
            finally:
                os._exit(0)
        connection.close()


main()
