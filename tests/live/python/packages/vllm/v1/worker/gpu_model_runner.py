# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The names of vLLM's workers, for tests."""
import functools

from vllm.v1.core.sched.output import SchedulerOutput


def inference_mode(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


class GPUModelRunner:
    def __init__(self):
        self.calls = self.tokens = self.requests = self.samples = 0

    @inference_mode
    def execute_model(self, scheduler_output, intermediate_tensors=None):
        self.calls += 1
        self.tokens += scheduler_output.total_num_scheduled_tokens
        self.requests += len(scheduler_output.num_scheduled_tokens)

    @inference_mode
    def sample_tokens(self, grammar_output=None):
        self.samples += 1


class CPUModelRunner(GPUModelRunner):
    pass
