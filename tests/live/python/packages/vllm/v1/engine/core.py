# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The names of vLLM's engine core, for tests."""


class Scheduler:
    def __init__(self):
        self.running = []

    def schedule(self):
        """What is to be executed in a step: the real one has one batch, or none."""
        return []


class EngineCore:
    """Without an executor its workers are elsewhere. batch_queue: of futures, as a collections.deque."""

    def __init__(self, scheduler=None, model_executor=None, batch_queue=None):
        self.scheduler = scheduler or Scheduler()
        self.model_executor = model_executor
        self.batch_queue = batch_queue
        self.calls = self.requests = 0
        # As the real one: what is called is kept, not looked up.
        self.step_fn = self.step if batch_queue is None else self.step_with_batch_queue

    def step(self):
        self.calls += 1
        self.requests += len(self.scheduler.running)
        for scheduler_output in self.scheduler.schedule():
            if not self.model_executor.execute_model(scheduler_output).exception():
                self.model_executor.sample_tokens(None).result()

    def step_with_batch_queue(self):
        """Launches a batch if there is one, and waits for the one before it once the queue is full."""
        self.calls += 1
        self.requests += len(self.scheduler.running)
        for scheduler_output in self.scheduler.schedule():
            self.model_executor.execute_model(scheduler_output)
            self.batch_queue.appendleft(self.model_executor.sample_tokens(None))
            if len(self.batch_queue) < self.batch_queue.maxlen:
                return
        if self.batch_queue:
            self.batch_queue.pop().result()


class EngineCoreProc(EngineCore):
    pass
