# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The names of TensorRT-LLM's PyTorch backend, for tests."""


class ScheduledRequests:
    def __init__(self, context, generation):
        self.context_requests = [None] * context
        self.generation_requests = [None] * generation


class PyExecutor:
    def __init__(self):
        self.calls = self.prefill = self.decode = 0

    def _forward_step(self, scheduled_requests, new_tensors_device=None, num_accepted=None):
        self.calls += 1
        self.prefill += len(scheduled_requests.context_requests)
        self.decode += len(scheduled_requests.generation_requests)

    def _executor_loop(self, steps, pause):
        for n in range(steps):
            self._forward_step(ScheduledRequests(n % 3, n % 4))
            pause()
