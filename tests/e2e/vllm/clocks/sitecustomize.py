# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""On PYTHONPATH of a vLLM: its worker keeps what the kernel counts of its thread around each step, for tests.

FBT_CLOCKS is a file, to which the worker appends a line for each call of execute_model and sample_tokens:

    BEGIN_NS END_NS DELAY_NS CPU_NS

by CLOCK_MONOTONIC; how long the thread was ready to run but had no CPU meanwhile (schedstat), and for how
long it had one. The calls that this takes are made before and after the function, not in it."""
import functools
import importlib.abc
import os
import sys
import time

MODULE = 'vllm.v1.worker.cpu_model_runner'
METHODS = ('execute_model', 'sample_tokens')
PATH = os.environ.get('FBT_CLOCKS')
# So many lines are written at once.
LINES = 500


def wrap(runner, name):
    function = getattr(runner, name)
    state = {}

    def read():
        return int(os.pread(state['fd'], 64, 0).split()[1]), time.thread_time_ns()

    def write():
        with open(PATH, 'a') as file:
            file.writelines('%d %d %d %d\n' % line for line in state['lines'])
        state['lines'] = []

    @functools.wraps(function)
    def method(*args, **kwargs):
        if not state:
            state.update(fd=os.open('/proc/thread-self/schedstat', os.O_RDONLY), lines=[])
        delay_ns, cpu_ns = read()
        begin_ns = time.monotonic_ns()
        try:
            return function(*args, **kwargs)
        finally:
            end_ns = time.monotonic_ns()
            after = read()
            state['lines'].append((begin_ns, end_ns, after[0] - delay_ns, after[1] - cpu_ns))
            if len(state['lines']) == LINES:
                write()

    setattr(runner, name, method)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            for method in METHODS:
                wrap(module.CPUModelRunner, method)

        spec.loader.exec_module = exec_module
        return spec


if PATH:
    import importlib.util
    sys.meta_path.insert(0, Finder())
