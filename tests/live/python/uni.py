# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine core that calls its worker's functions on its own thread, as vLLM's does with one GPU. What its
runner overrides it also calls, so that each call of a step function has another one within it."""
import collections, time

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.engine.core import EngineCoreProc, Scheduler
from vllm.v1.executor.uniproc_executor import UniProcExecutor
from vllm.v1.worker.gpu.model_runner import GPUModelRunner

METHODS = ('execute_model', 'sample_tokens')


def compute(us):
    end = time.monotonic_ns() + us * 1000
    while time.monotonic_ns() < end:
        pass


class Times(collections.Counter):
    """How long calls took, in ns, and their number, by the name of their function."""

    def add(self, method, begin_ns):
        self[method] += time.monotonic_ns() - begin_ns
        self[method + ' calls'] += 1


class Runner(GPUModelRunner):
    def __init__(self):
        super().__init__()
        self.inside = Times()

    def execute_model(self, scheduler_output, intermediate_tensors=None, dummy_run=False):
        begin = time.monotonic_ns()
        super().execute_model(scheduler_output)
        compute(100)
        self.inside.add('execute_model', begin)
        if scheduler_output.fails:
            raise RuntimeError('as ever')

    def sample_tokens(self, grammar_output):
        begin = time.monotonic_ns()
        super().sample_tokens(grammar_output)
        compute(30)
        self.inside.add('sample_tokens', begin)


class Executor(UniProcExecutor):
    def __init__(self):
        super().__init__(Runner())
        self.around = Times()

    def collective_rpc(self, method, args):
        begin = time.monotonic_ns()
        future = super().collective_rpc(method, args)
        self.around.add(method, begin)
        return future


class Batches(Scheduler):
    """None, one, or, with several, two for a step; a pass over one may fail."""

    def __init__(self, several):
        super().__init__()
        self.several, self.n, self.tokens = several, 0, None

    def schedule(self):
        self.n += 1
        count = 0 if self.n % 5 == 0 else 2 if self.several and self.n % 7 == 0 else 1
        batches = [SchedulerOutput([self.n % 40 + 1] * (self.n % 3 + 1)) for _ in range(count)]
        for batch in batches:
            batch.fails = self.several and self.n % 11 == 0
        self.tokens = sum(batch.total_num_scheduled_tokens for batch in batches) if batches else None
        return batches


class Core(EngineCoreProc):
    """Keeps of each step what calls within it had to do, and between which times they took, in us."""

    def __init__(self, queue):
        super().__init__(Batches(not queue), Executor(), collections.deque(maxlen=2) if queue else None)
        self.each = []

    def iterate(self):
        executor, waited = self.model_executor, self.each[-1]['n_tokens'] if self.each else None
        inside, around = executor.driver_worker.inside, executor.around
        inside.clear()
        around.clear()
        self.step_fn()
        row = {'n_tokens': self.scheduler.tokens, 'n_waited': waited}
        for method in METHODS:
            row[method] = [inside[method] / 1000 - inside[method + ' calls'], around[method] / 1000]
        self.each.append(row)
