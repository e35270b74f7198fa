# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What drives a program whose functions are armed, and the tool that arms them."""
import json, os, subprocess, sys

ARMED = 2
failed = []


def fact(name, holds, seen=None):
    print(('ok' if holds else 'not ok') + ' - ' + name, flush=True)
    if not holds:
        failed.append(name)
        print(f'# {name}: {seen}', flush=True)


def version_of(interpreter):
    """3.11.2, of a debug build 3.11.2-debug, of one that is free-threaded 3.13.5t"""
    return subprocess.run([interpreter, '-c', 'import sys; print("%d.%d.%d" % sys.version_info[:3] + '
                           'sys.abiflags.replace("d", "") + ("-debug" if hasattr(sys, "gettotalrefcount") else ""))'],
                          capture_output=True, text=True).stdout.strip()


class Process:
    """A program that answers a line with one of JSON."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        **options)
        self.pid = self.process.pid

    def say(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def ask(self, line):
        self.say(line)
        answer = self.process.stdout.readline()
        if not answer:
            print(f'not ok - {line}: {self.process.args} ended with {self.process.wait(10)}', flush=True)
            sys.exit(1)
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(30)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Tool(Process):
    def __init__(self, drive, pid):
        super().__init__(drive, str(pid))
        self.opened = json.loads(self.process.stdout.readline())['open']

    def arm(self, *wishes):
        for slot, wish in enumerate(wishes):
            self.ask(f'wish {slot} {wish}')
        self.resolved = self.ask('resolve')
        return self.ask('arm')

    def calls(self, index=0):
        return self.ask('count')['slots'][index]['begun']


def environment(library, **more):
    return {**os.environ, 'LD_PRELOAD': library, **more}


def end():
    sys.exit(bool(failed))
