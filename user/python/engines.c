/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/engines.h"

#define VLLM_PASS_NUMBERS                                                                          \
	"(n_tokens=scheduler_output.total_num_scheduled_tokens,"                                   \
	"n_requests=len(scheduler_output.num_scheduled_tokens))"

/*
 * Kinds of one process may nest; the outermost open one is the step. All processes of vLLM load the
 * modules of its workers: a function that is never called costs nothing.
 */
static const char *const rows[] = {
	/*
	 * vLLM V1: the engine's process; which of the two is used is chosen at its start. With one
	 * GPU (UniProcExecutor) the worker's functions are called inside of it.
	 */
	"py:vllm.v1.engine.core:EngineCore.step(n_tokens=INNER,"
	"n_requests=len(self.scheduler.running),execute_us=TIME(GPUModelRunner.execute_model),"
	"sample_us=TIME(GPUModelRunner.sample_tokens))",
	/* It launches one batch, and waits for that which the call before has launched. */
	"py:vllm.v1.engine.core:EngineCore.step_with_batch_queue(n_tokens=INNER,"
	"n_waited=BEFORE(n_tokens),n_requests=len(self.scheduler.running),"
	"execute_us=TIME(GPUModelRunner.execute_model))",
	/* Its workers: on a GPU with Triton those of the second module, from 0.32 on. */
	"py:vllm.v1.worker.gpu_model_runner:GPUModelRunner.execute_model" VLLM_PASS_NUMBERS,
	"py:vllm.v1.worker.gpu.model_runner:GPUModelRunner.execute_model" VLLM_PASS_NUMBERS,
	"py:vllm.v1.worker.gpu_model_runner:GPUModelRunner.sample_tokens",
	"py:vllm.v1.worker.gpu.model_runner:GPUModelRunner.sample_tokens",
	/* vLLM V0 */
	"py:vllm.worker.model_runner:ModelRunner.execute_model"
	"(n_requests=len(model_input.seq_lens))",
	/*
	 * SGLang: with overlap the results of a batch are handled in a call of their own. A batch
	 * keeps the number of its last prefill while it decodes, so that is no n_tokens: only the
	 * mode tells whether it was run now.
	 */
	"py:sglang.srt.managers.scheduler:Scheduler.run_batch"
	"(mode=batch.forward_mode,n_extend=batch.extend_num_tokens,n_requests=len(batch.reqs))",
	"py:sglang.srt.managers.scheduler:Scheduler.process_batch_result",
	/* TensorRT-LLM, PyTorch backend */
	"py:tensorrt_llm._torch.pyexecutor.py_executor:PyExecutor._forward_step"
	"(n_prefill=len(scheduled_requests.context_requests),"
	"n_decode=len(scheduled_requests.generation_requests))",
	/* Text Generation Inference */
	"py:text_generation_server.models.flash_causal_lm:FlashCausalLM.generate_token"
	"(n_requests=len(batch.requests))",
	"py:text_generation_server.models.causal_lm:CausalLM.generate_token"
	"(n_requests=len(batch.requests))",
	/* transformers, continuous batching */
	"py:transformers.generation.continuous_batching.continuous_api:"
	"ContinuousBatchingManager._generation_step"
	"(n_tokens=self.batch_processor.inputs_and_outputs.num_q_tokens,"
	"n_requests=len(self.batch_processor.inputs_and_outputs.requests_in_batch))",
	"py:transformers.generation.continuous_batching:ContinuousBatchProcessor._generation_step",
};

const char *python_engines_row(size_t index)
{
	return index < sizeof(rows) / sizeof(rows[0]) ? rows[index] : NULL;
}
