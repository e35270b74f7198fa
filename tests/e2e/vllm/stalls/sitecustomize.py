# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""On PYTHONPATH of a vLLM: makes a step of the worker stall when it is told to, for tests.

FBT_STALLS is a folder. An order is a file "order" there, with the name of a stall; the next small step
takes it, stalls in the middle of its execute_model, and appends to "truth" when that was. Nothing else of
vLLM changes, and "worker" has the pid: what is wrapped is a function that execute_model calls."""
import importlib.abc
import json
import os
import signal
import sys
import threading
import time

MODULE = 'vllm.v1.worker.gpu_model_runner'
FOLDER = os.environ.get('FBT_STALLS')
# A prompt's step is of another class, with few others to be compared with.
TOKENS_MAX = 3
known = []


def collect():
    """A storm: the heap, large as it is in a worker, is gone through again and again."""
    import gc
    for _ in range(3):
        gc.collect()


def keep_gil():
    """Another thread computes in C code that does not give the lock back."""
    started = []

    def hog():
        started.append(True)
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            pow(7, 400_000)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=hog, name='hog')
    sys.setswitchinterval(1)
    thread.start()
    while not started:
        time.sleep(0)
    time.sleep(0)
    sys.setswitchinterval(interval)
    thread.join()


def wait_for_lock():
    lock = threading.Lock()
    held = threading.Event()

    def holder():
        with lock:
            held.set()
            time.sleep(0.2)

    threading.Thread(target=holder, name='holder').start()
    while not held.is_set():
        time.sleep(0)
    with lock:
        pass


def starve():
    """Those that read these FIFOs take all CPUs."""
    for name in os.listdir(FOLDER):
        if name.startswith('starve.'):
            with open(os.path.join(FOLDER, name), 'wb', buffering=0) as fifo:
                fifo.write(b'g')


def stop():
    """Whoever gave the order continues it."""
    os.kill(os.getpid(), signal.SIGSTOP)


STALLS = {'gc': collect, 'gil': keep_gil, 'lock': wait_for_lock, 'starved': starve, 'stopped': stop}


def take_order():
    path = os.path.join(FOLDER, 'order')
    try:
        with open(path) as file:
            kind = file.read()
        os.rename(path, path + '.taken')
    except FileNotFoundError:
        return
    begin = time.monotonic_ns()
    STALLS[kind]()
    with open(os.path.join(FOLDER, 'truth'), 'a') as file:
        file.write(json.dumps({'kind': kind, 'pid': os.getpid(), 'begin_us': begin // 1000,
                               'end_us': time.monotonic_ns() // 1000}) + '\n')


def wrap(module):
    inner = module.GPUModelRunner._update_states

    def _update_states(self, scheduler_output):
        if 0 < scheduler_output.total_num_scheduled_tokens <= TOKENS_MAX:
            if not known:
                known.append(True)
                with open(os.path.join(FOLDER, 'worker'), 'w') as file:
                    file.write(str(os.getpid()))
            take_order()
        return inner(self, scheduler_output)

    module.GPUModelRunner._update_states = _update_states


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            wrap(module)

        spec.loader.exec_module = exec_module
        return spec


if FOLDER:
    import importlib.util
    sys.meta_path.insert(0, Finder())
