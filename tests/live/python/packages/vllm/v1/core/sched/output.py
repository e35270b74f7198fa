# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What vLLM's scheduler hands to its workers, for tests."""


class SchedulerOutput:
    def __init__(self, tokens):
        self.num_scheduled_tokens = dict(enumerate(tokens))
        self.total_num_scheduled_tokens = sum(tokens)
