#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""episodes.py KIND PROFILE PID [CGROUP]: makes trouble for a process again and again, with pauses in between,
until PROFILE has five more steps as long as such trouble makes one that was short: some falls between two
steps. A quota holds up several each time. Prints a line for each: KIND BEGIN END, in ns of CLOCK_MONOTONIC.

freeze  SIGSTOP, and SIGCONT after 300 ms
gdb     gdb attaches, waits for 300 ms, and detaches
hog     another thread with a real-time priority computes for 300 ms on the one CPU that the process may use
quota   its cgroup may use 10 ms of a CPU in each 100 ms, for 500 ms

This runs with a real-time priority, so that its times are those that it says.
"""
import json
import os
import resource
import signal
import subprocess
import sys
import time

HELD = 0.3
LIMITED = 0.5
PAUSE = 0.7
# The minimum and maximum length in us of a step that was held up by each.
LENGTHS = {"freeze": (HELD * 1e6, HELD * 1.25e6), "gdb": (HELD * 1e6, HELD * 3e6),
           "hog": (HELD * 1e6, HELD * 1.25e6), "quota": (0, 0)}
ENOUGH = 5
MOST = {"freeze": 40, "gdb": 40, "hog": 40, "quota": 8}


def freeze(pid, _):
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(HELD)
    finally:
        os.kill(pid, signal.SIGCONT)


def is_traced(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in file)


def be_ordinary():
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def gdb(pid, _):
    """gdb takes long to start and to end, so only the time in which it holds the process counts."""
    # Otherwise gdb would read symbols while the process is stopped.
    command = ["gdb", "-nx", "-batch", "-iex", "set auto-solib-add off", "-iex", "set debuginfod enabled off",
               "-p", str(pid), "-ex", f"shell sleep {HELD}", "-ex", "detach"]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=null, stdout=null, stderr=null, preexec_fn=be_ordinary) as process:
        times = []
        while process.poll() is None:
            if is_traced(pid) != (len(times) == 1):
                times.append(time.monotonic())
            time.sleep(0.001)
    if process.returncode or len(times) != 2:
        sys.exit(f"gdb: status {process.returncode}, stopped {len(times)} times")
    return times


def set_cpus(pid, cpus):
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            os.sched_setaffinity(int(tid), cpus)
        except ProcessLookupError:
            pass


def hog(pid, _):
    cpus = os.sched_getaffinity(pid)
    one = {max(cpus)}

    set_cpus(pid, one)
    os.sched_setaffinity(0, one)
    time.sleep(PAUSE / 2)
    begin = time.monotonic()
    while time.monotonic() < begin + HELD:
        pass
    end = time.monotonic()
    os.sched_setaffinity(0, cpus)
    set_cpus(pid, cpus)
    return begin, end


def limit(group, microseconds):
    path = os.path.join(group, "cpu.max")
    text = f"{microseconds or 'max'} 100000"

    if not os.path.exists(path):  # version 1
        path = os.path.join(group, "cpu.cfs_quota_us")
        text = str(microseconds or -1)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def quota(_, group):
    limit(group, 10000)
    try:
        time.sleep(LIMITED)
    finally:
        limit(group, 0)


class Steps:
    """The steps in a profile that is being written."""

    def __init__(self, profile):
        self.file = open(profile, encoding="utf-8")
        self.count(0, 0)

    def count(self, least, most):
        """The number of new steps whose length in us is within the limits."""
        found = 0
        while True:
            at = self.file.tell()
            line = self.file.readline()
            if not line.endswith("\n"):
                self.file.seek(at)
                return found
            if '"step_prof"' in line:
                found += least <= json.loads(line)["stage_us"]["total"] <= most


def main(kind, profile, pid, group=""):
    # The kernel ends this process if it keeps a CPU for longer than a hog is meant to.
    longest = int(3 * HELD * 1000000)
    resource.setrlimit(resource.RLIMIT_RTTIME, (longest, longest))
    steps = Steps(profile)
    found = 0
    for _ in range(MOST[kind]):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        begin = time.monotonic()
        times = globals()[kind](int(pid), group) or (begin, time.monotonic())
        be_ordinary()
        print(kind, *(int(t * 1e9) for t in times), flush=True)
        time.sleep(PAUSE)
        found += steps.count(*LENGTHS[kind])
        if found >= ENOUGH:
            break


main(*sys.argv[1:])
