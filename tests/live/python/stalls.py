# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine whose step is held up by its own interpreter: every 20th collects all garbage over a large heap,
every 20th makes so many objects that the interpreter collects by itself, and three of 20 wait for a thread that
keeps the GIL: in C code that computes, or sleeps, or every other time first sleeps and then computes, or in a
collection. Says ready, waits for its go, makes STEPS steps, and writes its own account, by CLOCK_MONOTONIC: stalls.py TRUTH STEPS"""
import ctypes, gc, itertools, json, os, select, sys, threading, time

HOLD_US, SLEEP_US = 30000, 2000
COLLECT, COMPUTE, SLEEP, OTHER, MAKE = 3, 8, 13, 16, 18  # of 20 steps
BOTH = 33  # of 40, instead of SLEEP


class Engine:
    def step(self, n):
        x = 0
        for i in range(3000):
            x += i
        if n % 20 == COLLECT:
            collect(n)
        elif n % 20 in (COMPUTE, SLEEP, OTHER):
            wait(n)
        elif n % 20 == MAKE:
            make(n)
        return x


def mark(phase, _):
    marks[phase] = time.monotonic_ns()


def collect(n):
    """The interpreter calls mark() right around the collection, or in it: that is no longer than what is
    probed, and leaves little room for what the host of a virtual machine takes beside it."""
    gc.callbacks.append(mark)
    cpu, wall = time.thread_time_ns(), time.monotonic_ns()
    gc.collect(2)
    wall, cpu = time.monotonic_ns() - wall, time.thread_time_ns() - cpu
    gc.callbacks.remove(mark)
    truth['collect'][n] = {'wall_ns': wall, 'cpu_ns': cpu, 'inner_ns': marks['stop'] - marks['start']}


def wait(n):
    """Lets the other thread have the GIL, which then keeps it for HOLD_US. Giving the lock back waits for
    nothing; an Event has a lock of its own, for which this thread may have to wait."""
    before = len(holds)
    how.append(BOTH if n % 40 == BOTH else n % 20)
    sleeps, start = 0, time.monotonic_ns()  # the other thread may have the GIL right after the release
    wanted.release()
    while len(holds) == before:
        time.sleep(SLEEP_US / 1e6)
        sleeps += 1
    truth['wait'][n] = {'wall_us': (time.monotonic_ns() - start) / 1000, 'slept_us': sleeps * SLEEP_US}


def make(n):
    gc.enable()
    kept = [[i] for i in range(20000)]
    gc.disable()
    return kept


def hold():
    """None of these calls lets go of the GIL; one is not on a CPU meanwhile."""
    each = 200000
    start = time.monotonic_ns()
    sum(range(each))
    count = each * HOLD_US * 1000 // max(time.monotonic_ns() - start, 1)
    truth['holder'] = threading.get_native_id()
    ready.set()
    while True:
        wanted.acquire()
        start = time.monotonic_ns()
        what = how.pop()
        if what == COMPUTE:
            sum(range(count))
        elif what == BOTH:
            sum(itertools.chain(map(usleep, [HOLD_US]), range(count // 4)))
        elif what == SLEEP:
            usleep(HOLD_US)
        else:
            gc.collect(2)
            truth['others'] += 1
        holds.append([start, time.monotonic_ns()])


def collections():
    return sum(generation['collections'] for generation in gc.get_stats())


truth = {'collect': {}, 'wait': {}, 'others': 0}
path, steps = sys.argv[1], int(sys.argv[2])
usleep = ctypes.PyDLL(None).usleep
wanted, ready, how, holds, marks = threading.Lock(), threading.Event(), [], [], {}
wanted.acquire()
gc.disable()
heap = [[i] for i in range(400000)]
threading.Thread(target=hold, daemon=True).start()
ready.wait()
engine = Engine()
print('ready', flush=True)
select.select([sys.stdin], [], [])
sys.stdin.readline()
before = collections()
truth['begin_ns'] = time.monotonic_ns()
for n in range(steps):
    engine.step(n)
    time.sleep(0.001)
truth['collections'] = collections() - before
truth['holds'] = holds
json.dump(truth, open(path + '.new', 'w'))
os.rename(path + '.new', path)
# The end of an interpreter collects too.
os._exit(0)
