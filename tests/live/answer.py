#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""answer.py FIFO: runs scripts of tests that ask many small questions, each in a fork of this process:
an interpreter that starts takes longer than any of the answers.

A question is fields that each end with a zero byte: the fifo for the answer, OUT, TMP, the number of
words, and these: a script and its arguments. What a script imports is imported here
first.
"""
import ast
import functools
import importlib
import os
import select
import sys
import traceback


@functools.lru_cache(maxsize=None)
def load(script):
    with open(script, encoding="utf-8") as file:
        tree = ast.parse(file.read(), script)
    for node in tree.body:
        if isinstance(node, ast.Import):
            for name in node.names:
                importlib.import_module(name.name)
    return compile(tree, script, "exec")


def answer(reply, out, tmp, words):
    """Answers one question, in the fork."""
    fd = os.open(reply, os.O_WRONLY)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
    os.environ.update(OUT=out, TMP=tmp)
    sys.argv = words
    try:
        exec(load(words[0]), {"__name__": "__main__"})
    except Exception:  # as an interpreter of its own would
        traceback.print_exc()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code)
    sys.stdout.flush()


def serve(fields):
    reply, out, tmp, _, *words = fields
    try:
        load(words[0])
    except Exception:  # told again in the fork, to whoever asked
        pass
    if os.fork() == 0:
        try:
            answer(reply, out, tmp, words)
        finally:
            os._exit(0)
    os.wait()


def main():
    # Opened for reading and writing, so that the FIFO has no end while nobody asks.
    fifo = os.open(sys.argv[1], os.O_RDWR)
    parent, rest = os.getppid(), b""
    while os.getppid() == parent:
        if not select.select([fifo], [], [], 2)[0]:
            continue
        rest += os.read(fifo, 65536)
        while True:
            fields = rest.split(b"\0")
            if len(fields) < 5 or len(fields) - 5 < int(fields[3]):
                break
            count = 4 + int(fields[3])
            serve([field.decode() for field in fields[:count]])
            rest = b"\0".join(fields[count:])


main()
