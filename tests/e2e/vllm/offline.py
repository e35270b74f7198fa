# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A vLLM without a server, its engine in this process: offline.py MODEL TRUTH TOKENS

Says ready, waits for its go, has prompts answered, some at once, and writes how many tokens each pass had, by
vLLM's own scheduler."""
import json
import os
import select
import sys

READY = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # vLLM writes its log there

from vllm import LLM, SamplingParams  # noqa: E402

MODEL, TRUTH, TOKENS = sys.argv[1], sys.argv[2], int(sys.argv[3])
AT_ONCE = [1, 3, 8, 2]


def keep_passes(core):
    passes, schedule = [], core.scheduler.schedule

    def keep(*args, **kwargs):
        output = schedule(*args, **kwargs)
        passes.append(output.total_num_scheduled_tokens)
        return output

    core.scheduler.schedule = keep
    return passes


def main():
    # With bfloat16 its attention uses AMX without asking the kernel first: an illegal instruction.
    llm = LLM(model=MODEL, load_format="dummy", max_model_len=1024, dtype="float32", enforce_eager=True,
              enable_prefix_caching=False)
    params = SamplingParams(max_tokens=TOKENS, temperature=0.8)
    llm.generate(["Once"], params, use_tqdm=False)
    core = llm.llm_engine.engine_core.engine_core
    print("ready", file=READY, flush=True)
    select.select([sys.stdin], [], [])
    sys.stdin.readline()
    passes = keep_passes(core)
    for count in AT_ONCE:
        llm.generate(["What is slow, and why?"] * count, params, use_tqdm=False)
    truth = {"executor": type(core.model_executor).__name__, "passes": passes}
    with open(TRUTH + ".new", "w") as file:
        json.dump(truth, file)
    os.rename(TRUTH + ".new", TRUTH)


if __name__ == "__main__":
    main()
