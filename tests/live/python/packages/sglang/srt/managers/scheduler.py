# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The names of SGLang's scheduler, for tests."""
from enum import IntEnum


class ForwardMode(IntEnum):
    EXTEND = 1
    DECODE = 2


class ScheduleBatch:
    """The batch of a prefill is that of its decode steps later: what was set for the first one stays."""
    forward_mode = None
    extend_num_tokens = None

    def __init__(self, reqs):
        self.reqs = [None] * reqs

    def prepare_for_extend(self, tokens):
        self.forward_mode = ForwardMode.EXTEND
        self.extend_num_tokens = tokens

    def prepare_for_decode(self):
        self.forward_mode = ForwardMode.DECODE


class Scheduler:
    def __init__(self):
        self.batches = self.results = self.requests = 0
        self.each = []

    def run_batch(self, batch, pp_proxy_tensors=None):
        self.batches += 1
        self.requests += len(batch.reqs)
        is_prefill = batch.forward_mode == ForwardMode.EXTEND
        self.each.append({'mode': int(batch.forward_mode), 'n_requests': len(batch.reqs),
                          'n_extend': batch.extend_num_tokens,
                          'tokens': batch.extend_num_tokens if is_prefill else len(batch.reqs)})
        return batch

    def process_batch_result(self, batch, result):
        self.results += 1
