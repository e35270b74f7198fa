# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The names of vLLM's engine core, for tests."""


class Scheduler:
    def __init__(self):
        self.running = []


class EngineCore:
    def __init__(self):
        self.scheduler = Scheduler()
        self.calls = self.requests = 0
        # As the real one: what is called is kept, not looked up.
        self.step_fn = self.step

    def step(self):
        self.calls += 1
        self.requests += len(self.scheduler.running)

    def step_with_batch_queue(self):
        raise NotImplementedError


class EngineCoreProc(EngineCore):
    pass
