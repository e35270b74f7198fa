# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The executor of vLLM with one GPU, for tests: its worker is called on the thread of the engine core."""
from concurrent.futures import Future


class UniProcExecutor:
    def __init__(self, driver_worker):
        self.driver_worker = driver_worker

    def collective_rpc(self, method, args):
        future = Future()
        try:
            future.set_result(getattr(self.driver_worker, method)(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def execute_model(self, scheduler_output):
        return self.collective_rpc('execute_model', (scheduler_output,))

    def sample_tokens(self, grammar_output):
        return self.collective_rpc('sample_tokens', (grammar_output,))
