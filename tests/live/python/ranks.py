# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine core and its two ranks, by the names of vLLM: ranks.py TRUTH STEPS

The core gives an order for each iteration and waits for rank 0, as vLLM does. Within execute_model the ranks
meet at a barrier in shared memory, where they wait in a loop: without calls, or with short sleeps. Every 12th
iteration one rank is late, in one of the ways of KINDS. Says ready, waits for its go, and writes what each rank
did, by CLOCK_MONOTONIC."""
import gc, json, mmap, os, select, signal, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'packages'))
from vllm.v1.engine.core import EngineCore
from vllm.v1.worker.gpu_model_runner import CPUModelRunner, SchedulerOutput

# Where the rank is late, and how.
KINDS = ['within stop', 'within starve', 'within own', 'within gc', 'begins stop', 'begins starve',
         'begins sleep', 'ends sleep', 'ends stop']
EVERY, FIRST = 12, 30
STOP_MS, HOLD_MS = 300, 40

# Priorities: who does little, but at once, comes first.
RANK, HOG, CORE = 10, 15, 19

# Words of the shared memory.
ORDER, DONE, BARRIER, STOP, STARVE = 0, 2, 4, 6, 8


def plan(n, steps):
    """The rank that is late in iteration n, and its kind."""
    if n < FIRST or n % EVERY or n > steps - EVERY:
        return None, None
    turn = (n - FIRST) // EVERY
    return turn // len(KINDS) % 2, KINDS[turn % len(KINDS)]


def compute(ms):
    """Looks at the clock seldom, for that is a call."""
    end = time.thread_time_ns() + ms * 1e6
    while time.thread_time_ns() < end:
        for _ in range(2000):
            pass


class Rank(CPUModelRunner):
    def __init__(self, rank, shared, steps):
        super().__init__()
        self.rank, self.shared, self.steps = rank, shared, steps
        self.n, self.kind, self.late, self.spans = 0, '', {}, []
        self.heap = [[i] for i in range(600000)]

    def trouble(self, where):
        """What is due here."""
        if not self.kind.startswith(where):
            return
        start, how = time.monotonic_ns(), self.kind.split()[1]
        if how in ('stop', 'starve'):
            word = (STOP if how == 'stop' else STARVE) + self.rank
            self.shared[word] = 1
            while self.shared[word]:
                pass
        elif how == 'own':
            compute(HOLD_MS)
        elif how == 'gc':
            gc.collect(2)
        else:
            time.sleep(HOLD_MS / 1000)
        self.late[self.n] = {'kind': self.kind, 'pid': os.getpid(), 'ms': (time.monotonic_ns() - start) / 1e6}

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        self.entered = time.monotonic_ns()
        compute(1)
        self.trouble('within')
        self.shared[BARRIER + self.rank] = self.n
        spins = plan(self.n, self.steps)[1] != 'within own'
        while self.shared[BARRIER + 1 - self.rank] < self.n:
            if not spins:
                time.sleep(0.0005)

    def sample_tokens(self, grammar_output=None):
        compute(0.2)
        self.trouble('ends')

    def iterate(self):
        self.n += 1
        rank, kind = plan(self.n, self.steps)
        self.kind = kind if rank == self.rank else ''
        while self.shared[ORDER] < self.n:
            time.sleep(0.0002)
        self.trouble('begins')
        begin, cpu = time.monotonic_ns(), time.thread_time_ns()
        self.execute_model(SchedulerOutput([self.n % 7 + 1]))
        self.sample_tokens()
        self.spans.append([begin, time.monotonic_ns(), time.thread_time_ns() - cpu, self.entered, waited_ns(),
                           stolen()])
        self.shared[DONE + self.rank] = self.n


class Core(EngineCore):
    def __init__(self, shared, ranks):
        super().__init__()
        self.shared, self.ranks, self.n = shared, ranks, 0

    def step(self):
        """Gives the order, and keeps on until the first rank is done."""
        self.n += 1
        self.shared[ORDER] = self.n
        self.await_done(0)

    def await_done(self, rank):
        while self.shared[DONE + rank] < self.n:
            self.stop_ranks()
            time.sleep(0.0002)

    def stop_ranks(self):
        for rank, process in enumerate(self.ranks):
            if self.shared[STOP + rank]:
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(STOP_MS / 1000)
                self.shared[STOP + rank] = 0
                os.kill(process.pid, signal.SIGCONT)


def stolen():
    """Ticks of 10 ms for which the machine itself had no CPU: a virtual one's host took it."""
    with open('/proc/stat') as file:
        return int(file.readline().split()[8])


def waited_ns():
    """How long this thread has waited for a CPU so far."""
    with open('/proc/thread-self/schedstat') as counts:
        return int(counts.read().split()[1])


def go_first(priority):
    """Nothing else on this machine makes a rank late, where that is allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        os.nice(-priority)


def cpu_of(rank):
    cpus = sorted(os.sched_getaffinity(0))
    return {cpus[rank % len(cpus)]}


def run_hog(shared, rank):
    """Has the CPU of a rank while that asks for it."""
    os.sched_setaffinity(0, cpu_of(rank))
    go_first(HOG)
    print('ready', flush=True)
    while True:
        if shared[STARVE + rank]:
            compute(HOLD_MS)
            shared[STARVE + rank] = 0
        time.sleep(0.001)


def run_rank(shared, rank, steps):
    gc.disable()
    os.sched_setaffinity(0, cpu_of(rank))
    with open('/proc/self/comm', 'w') as comm:
        comm.write('Worker_TP%d' % rank)
    part = Rank(rank, shared, steps)
    go_first(RANK)
    print('ready', flush=True)
    for _ in range(steps):
        part.iterate()
    print(json.dumps({'pid': os.getpid(), 'late': part.late, 'spans': part.spans}), flush=True)
    os._exit(0)


def main():
    path, steps = sys.argv[1], int(sys.argv[2])
    role, rank = (sys.argv[3], int(sys.argv[4])) if len(sys.argv) > 3 else ('core', 0)
    with open(path + '.shared', 'a+b') as file:
        file.truncate(4096)
        shared = memoryview(mmap.mmap(file.fileno(), 4096)).cast('q')
    if role != 'core':
        (run_hog(shared, rank) if role == 'hog' else run_rank(shared, rank, steps))
    started = {role: [subprocess.Popen([sys.executable] + sys.argv[:3] + [role, str(rank)],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
                      for rank in (0, 1)] for role in ('rank', 'hog')}
    ranks = started['rank']
    for process in ranks + started['hog']:
        process.stdout.readline()
    core = Core(shared, ranks)
    go_first(CORE)
    print('ready', flush=True)
    select.select([sys.stdin], [], [])
    sys.stdin.readline()
    for _ in range(steps):
        core.step()
    core.await_done(1)
    truth = {'core': os.getpid(), 'ranks': [json.loads(process.stdout.readline()) for process in ranks]}
    for process in started['hog']:
        process.kill()
    for process in ranks + started['hog']:
        process.wait()
    with open(path + '.new', 'w') as file:
        json.dump(truth, file)
    os.rename(path + '.new', path)


main()
