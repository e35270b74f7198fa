# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The names of vLLM's second model runner, which GPUs with Triton have, for tests."""
from vllm.v1.worker.gpu_model_runner import inference_mode


class GPUModelRunner:
    def __init__(self):
        self.calls = self.tokens = self.requests = self.samples = 0

    @inference_mode
    def execute_model(self, scheduler_output, intermediate_tensors=None, dummy_run=False):
        self.calls += 1
        self.tokens += scheduler_output.total_num_scheduled_tokens
        self.requests += len(scheduler_output.num_scheduled_tokens)

    @inference_mode
    def sample_tokens(self, grammar_output):
        self.samples += 1
