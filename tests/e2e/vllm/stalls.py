# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Has a vLLM with stalls/sitecustomize.py stall: stalls.py FOLDER COUNT TRUTH CPU...

Each kind of stall COUNT times, one after the other, with a second of health between them. TRUTH gets the
list of when each was. It sends SIGCONT to what has stopped itself, and keeps a process for each CPU of
the worker that takes it at once when that is asked for."""
import json
import os
import signal
import sys
import time

KINDS = ['gc', 'gil', 'lock', 'starved', 'stopped']
STALL_S = 0.25
FOLDER, COUNT, TRUTH = sys.argv[1], int(sys.argv[2]), sys.argv[3]
CPUS = [int(cpu) for cpu in sys.argv[4:]]


def take_cpu(cpu, path):
    """For less than the kernel lets a real-time thread keep it (sched_rt_runtime_us)."""
    os.sched_setaffinity(0, [cpu])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    fifo = os.open(path, os.O_RDWR)
    while True:
        os.read(fifo, 1)
        until = time.monotonic() + STALL_S
        while time.monotonic() < until:
            pass


def truths():
    try:
        with open(os.path.join(FOLDER, 'truth')) as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def is_stopped(pid):
    with open('/proc/%d/stat' % pid) as file:
        return file.read().rsplit(')', 1)[1].split()[0] == 'T'


def order(kind, worker):
    before = len(truths())
    with open(os.path.join(FOLDER, 'order.new'), 'w') as file:
        file.write(kind)
    os.rename(os.path.join(FOLDER, 'order.new'), os.path.join(FOLDER, 'order'))
    until = time.monotonic() + 60
    while len(truths()) == before:
        if kind == 'stopped' and is_stopped(worker):
            time.sleep(STALL_S)
            os.kill(worker, signal.SIGCONT)
        if time.monotonic() > until:
            raise SystemExit('no step takes the order ' + kind)
        time.sleep(0.01)


def main():
    with open(os.path.join(FOLDER, 'worker')) as file:
        worker = int(file.read())
    hogs = []
    for cpu in CPUS:
        path = os.path.join(FOLDER, 'starve.%d' % cpu)
        os.mkfifo(path)
        hogs.append(os.fork())
        if not hogs[-1]:
            take_cpu(cpu, path)
    try:
        for kind in KINDS * COUNT:
            time.sleep(1)
            order(kind, worker)
    finally:
        for hog in hogs:
            os.kill(hog, signal.SIGKILL)
    with open(TRUTH, 'w') as file:
        json.dump(truths(), file)


main()
