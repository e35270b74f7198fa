# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine of vLLM's names, whose step is a method that is kept as a bound method. Says ready, waits for
its go, makes STEPS steps, and writes its own account: engine.py TRUTH STEPS"""
import json, os, select, sys, time, types


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    for member in members.values():
        member.__module__ = name


class SchedulerOutput:
    def __init__(self, tokens):
        self.num_scheduled_tokens = {i: 1 for i in range(len(tokens))}
        self.total_num_scheduled_tokens = sum(tokens)


class Scheduler:
    def __init__(self):
        self.running = []


class GPUModelRunner:
    def execute_model(self, scheduler_output, intermediate_tensors=None):
        truth['model_calls'] += 1
        truth['tokens'] += scheduler_output.total_num_scheduled_tokens
        os.getppid()
        os.getppid()
        if truth['model_calls'] % 50 == 0:
            truth['raised'] += 1
            raise RuntimeError('as ever')
        return scheduler_output


class CPUModelRunner(GPUModelRunner):
    pass


class EngineCore:
    def __init__(self):
        self.scheduler = Scheduler()
        self.step_fn = self.step

    def step(self):
        truth['core_calls'] += 1
        os.getpgid(0)
        return truth['core_calls']


truth = {'model_calls': 0, 'core_calls': 0, 'tokens': 0, 'raised': 0, 'requests': 0}
path, steps = sys.argv[1], int(sys.argv[2])
module('vllm.v1.worker.gpu_model_runner', GPUModelRunner=GPUModelRunner)
module('vllm.v1.engine.core', EngineCore=EngineCore)
core, runner = EngineCore(), CPUModelRunner()
print('ready', flush=True)
# A thread that reads a named pipe is not taken for an injection; one that polls it is.
select.select([sys.stdin], [], [])
sys.stdin.readline()
for n in range(steps):
    core.scheduler.running = [0] * (n % 5)
    truth['requests'] += n % 5
    core.step_fn()
    try:
        if n % 2:
            runner.execute_model(SchedulerOutput([n % 7, 3]))
        else:
            runner.execute_model(scheduler_output=SchedulerOutput([n % 7, 3]))
    except RuntimeError:
        pass
    time.sleep(0.001)
json.dump(truth, open(path + '.new', 'w'))
os.rename(path + '.new', path)
