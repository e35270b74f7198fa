/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "python/outlook.h"

/* The text for a program with this word on its command line. */
static void look(const char *word, char text[PYTHON_OUTLOOK_MAX])
{
	int input[2], output[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(input), 0);
	assert_int_equal(pipe(output), 0);
	pid = fork();
	if (!pid) {
		dup2(input[0], STDIN_FILENO);
		dup2(output[1], STDOUT_FILENO);
		close(input[1]);
		execlp("sh", "sh", "-c", "echo; read line", word, NULL);
		_exit(127);
	}
	assert_int_equal(read(output[0], &byte, 1), 1);
	python_outlook((uint32_t)pid, NULL, 0, text);
	close(input[0]);
	close(input[1]);
	close(output[0]);
	close(output[1]);
	waitpid(pid, NULL, 0);
}

static void an_engine_is_told_by_the_command_line(void **state)
{
	static const char *const words[] = {"vllm", "/opt/bin/vllm", "vllm.entrypoints.api_server",
					    "/x/site-packages/vllm/__main__.py"};
	char text[PYTHON_OUTLOOK_MAX];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		look(words[i], text);
		assert_string_equal(text,
				    "vllm: EngineCore.step, EngineCore.step_with_batch_queue, "
				    "GPUModelRunner.execute_model, "
				    "GPUModelRunner.sample_tokens, "
				    "ModelRunner.execute_model");
	}
	look("sglang.launch_server", text);
	assert_string_equal(text, "sglang: Scheduler.run_batch, Scheduler.process_batch_result");
	look("text_generation_server.cli", text);
	assert_string_equal(text, "text_generation_server: FlashCausalLM.generate_token, "
				  "CausalLM.generate_token");
}

static void of_another_program_all_are_named(void **state)
{
	char text[PYTHON_OUTLOOK_MAX];

	look("my-vllm-client", text);
	assert_string_equal(text, "the steps of vllm, sglang, tensorrt_llm, "
				  "text_generation_server, transformers");
}

static void what_was_asked_for_is_named(void **state)
{
	const struct step_spec specs[] = {
		{.form = STEP_SPEC_PYTHON, .text = (char *)"py:a:b"},
		{.form = STEP_SPEC_PYTHON, .text = (char *)"py:c:d(n=e)"},
	};
	char text[PYTHON_OUTLOOK_MAX];

	python_outlook((uint32_t)getpid(), specs, 2, text);
	assert_string_equal(text, "py:a:b, py:c:d(n=e)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_engine_is_told_by_the_command_line),
		cmocka_unit_test(of_another_program_all_are_named),
		cmocka_unit_test(what_was_asked_for_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
