# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The names of SGLang's scheduler, for tests."""


class ScheduleBatch:
    def __init__(self, reqs, extend_num_tokens):
        self.reqs = [None] * reqs
        self.extend_num_tokens = extend_num_tokens


class Scheduler:
    def __init__(self):
        self.batches = self.results = self.tokens = self.requests = 0

    def run_batch(self, batch, pp_proxy_tensors=None):
        self.batches += 1
        self.requests += len(batch.reqs)
        # A batch that only decodes has None.
        self.tokens += batch.extend_num_tokens or 0
        return batch

    def process_batch_result(self, batch, result):
        self.results += 1
