#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""counters.py PID FILE CPU_STAT: writes what the kernel counts of a process, every 5 ms until SIGTERM,
independently of any tracer. A line each:

    NS STEAL_US PRESSURE_US THROTTLED_US TID:DELAY_US:CPU_US TID:DELAY_US:CPU_US …

NS            CLOCK_MONOTONIC when the line was begun
STEAL_US      time that the host took from all CPUs (/proc/stat)
PRESSURE_US   time in which some task waited for a CPU (/proc/pressure/cpu); 0 where there is none
THROTTLED_US  time that the cgroup with this cpu.stat was held up; "-" for no file
DELAY_US      time that a thread was ready to run and had no CPU (schedstat)
CPU_US        time that it had one
"""
import os
import signal
import sys
import time

PERIOD = 0.005
LOOK_EVERY = 20  # samples, for new threads


def open_or_none(path):
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None


def read(fd):
    try:
        return os.pread(fd, 4096, 0).decode() if fd is not None else ""
    except OSError:  # the thread has ended
        return ""


def steal_us(fd):
    ticks = int(read(fd).split(None, 9)[8])
    return ticks * 1000000 // os.sysconf("SC_CLK_TCK")


def pressure_us(fd):
    text = read(fd)
    return int(text.split("total=")[1].split()[0]) if text else 0


def throttled_us(fd):
    for line in read(fd).splitlines():
        name, value = line.split()
        if name == "throttled_usec":
            return int(value)
        if name == "throttled_time":  # version 1, in ns
            return int(value) // 1000
    return 0


def look(threads, pid):
    """Keeps the threads' files open: opening takes longer than reading."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    for tid in tids:
        if tid not in threads:
            fd = open_or_none(f"/proc/{pid}/task/{tid}/schedstat")
            if fd is not None:
                threads[tid] = fd
    return True


def delays(threads):
    for tid, fd in list(threads.items()):
        fields = read(fd).split()
        if fields:
            yield f"{tid}:{int(fields[1]) // 1000}:{int(fields[0]) // 1000}"
        else:
            os.close(threads.pop(tid))


def main(pid, path, cpu_stat):
    over = []
    threads = {}
    files = [open_or_none(name) for name in ("/proc/stat", "/proc/pressure/cpu", cpu_stat)]

    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    # A real-time priority, if allowed, so that a busy machine does not delay the readings.
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    except OSError:
        pass
    with open(path, "w", encoding="ascii", buffering=1 << 20) as out:
        count = 0
        while not over:
            if count % LOOK_EVERY == 0 and not look(threads, pid):
                break
            count += 1
            print(time.monotonic_ns(), steal_us(files[0]), pressure_us(files[1]), throttled_us(files[2]),
                  *delays(threads), file=out)
            time.sleep(PERIOD)


main(sys.argv[1], sys.argv[2], sys.argv[3])
