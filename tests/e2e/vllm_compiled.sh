#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The same as vllm.sh, with a model that vLLM compiles (torch.compile), as it does by default.
COMPILED=1 exec tests/e2e/vllm.sh
