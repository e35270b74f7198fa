/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "doctor_engines.h"
#include "doctor_fixture.h"
#include "doctor_gpu.h"
#include "doctor_process.h"
#include "doctor_steps.h"

static void hear(struct doctor_words *words, const char *text)
{
	words->any = true;
	snprintf(words->text, sizeof(words->text), "%s", text);
}

static struct doctor_process good(void)
{
	struct doctor_process process = {.tgid = 42,
					 .comm = "llama-server",
					 .exe = "/usr/bin/llama-server",
					 .uid = 1000,
					 .threads = 12,
					 .state = 'S'};

	return process;
}

static struct doctor_checks judge(const struct doctor_process *process)
{
	struct doctor_checks checks = {.tgid = process->tgid};

	doctor_process_judge(process, &checks);
	return checks;
}

static void a_process_is_named_with_what_it_runs(void **state)
{
	struct doctor_process process = good();
	struct doctor_checks checks = judge(&process);

	(void)state;
	assert_int_equal(checks.items.count, 1);
	assert_check(&checks, "process", DOCTOR_OK,
		     "llama-server, user 1000, 12 threads, /usr/bin/llama-server", NULL);
	end_checks(&checks);
	process.replaced = true;
	process.own_uid = 1000;
	process.threads = 1;
	process.inner_pid = 1;
	checks = judge(&process);
	assert_check(&checks, "process", DOCTOR_OK,
		     "user 1000 (as we), 1 thread, /usr/bin/llama-server (replaced", NULL);
	assert_check(&checks, "container", DOCTOR_OK, "PID 1", NULL);
	end_checks(&checks);
}

static void a_process_that_is_stopped_or_traced_is_a_limit(void **state)
{
	struct doctor_process process = good();
	struct doctor_checks checks;

	(void)state;
	process.state = 'T';
	checks = judge(&process);
	assert_check(&checks, "state", DOCTOR_WARN, "stopped", "kill -CONT 42");
	end_checks(&checks);
	process.tracer = 7;
	strcpy(process.tracer_comm, "gdb");
	checks = judge(&process);
	assert_check(&checks, "state", DOCTOR_WARN, "process 7 (gdb)", "end");
	end_checks(&checks);
}

static void a_process_that_cannot_be_looked_at_is_an_obstacle(void **state)
{
	struct doctor_process process = {.tgid = 42, .err = -ESRCH};
	struct doctor_checks checks;

	(void)state;
	hear(&process.words, "process 42: no such process");
	checks = judge(&process);
	assert_check(&checks, "process", DOCTOR_NO, "no such process", "doctor");
	end_checks(&checks);
	process.err = -EPERM;
	checks = judge(&process);
	assert_check(&checks, "process", DOCTOR_NO, "may not be read", "sudo");
	end_checks(&checks);
	process.may_trace = true;
	checks = judge(&process);
	assert_check(&checks, "process", DOCTOR_NO, "may not be read", "security module");
	end_checks(&checks);
	process.err = -EINVAL;
	checks = judge(&process);
	assert_check(&checks, "process", DOCTOR_NO, "", "not one of its threads");
	end_checks(&checks);
}

static struct step_function *make_function(const char *name)
{
	struct step_function *function = target_function_new();

	assert_non_null(function);
	function->name = strdup(name);
	function->path = strdup("/lib/libllama.so");
	function->address = 0x1f0;
	assert_int_equal(vec_push(&function->exit_offsets, 8), 0);
	return function;
}

static struct doctor_checks judge_steps(const struct doctor_steps *steps)
{
	struct doctor_checks checks = {.tgid = 42};

	doctor_steps_judge(steps, 42, &checks);
	return checks;
}

static void step_functions_are_named_with_their_place(void **state)
{
	struct doctor_steps steps = {.found = 1, .interval_ns = 100000000};
	struct step_function *llama = make_function("llama_decode");
	struct doctor_checks checks;

	(void)state;
	assert_int_equal(vec_push(&steps.functions, llama), 0);
	llama->builtin = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_OK,
		     "llama_decode, 1 exit, of the built-in table, /lib/libllama.so+0x1f0", NULL);
	end_checks(&checks);
	steps.probe_err = -EOPNOTSUPP;
	hear(&steps.words, "cannot be probed");
	checks = judge_steps(&steps);
	assert_check(&checks, "step probes", DOCTOR_WARN, "intervals of 100 ms", "--step");
	end_checks(&checks);
	steps.named = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step probes", DOCTOR_NO, "cannot be probed", "--step");
	end_checks(&checks);
	steps.probe_err = 0;
	llama->uretprobe = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_WARN, "aborts", "--uretprobe");
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void without_a_step_function_there_are_intervals(void **state)
{
	struct doctor_steps steps = {.interval_ns = 100000000};
	struct doctor_checks checks = judge_steps(&steps);

	(void)state;
	assert_check(&checks, "step function", DOCTOR_WARN, "intervals of 100 ms", "--step");
	end_checks(&checks);
	steps.stripped = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_WARN, "intervals", "--symbols");
	end_checks(&checks);
	assert_int_equal(vec_push(&steps.candidates, make_function("decode")), 0);
	assert_int_equal(vec_push(&steps.candidates, make_function("forward")), 0);
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_WARN, "intervals", "'decode', 'forward'");
	end_checks(&checks);
	steps.named = true;
	hear(&steps.words, "--step x: no such function");
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_NO, "--step x", "--list-steps -p 42");
	end_checks(&checks);
	steps.waits = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_WARN, "until it comes", "'decode'");
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void a_step_that_cannot_be_resolved_is_an_obstacle(void **state)
{
	struct doctor_steps steps = {.found = -ENOTSUP};
	struct doctor_checks checks;

	(void)state;
	hear(&steps.words, "no safe exit");
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_NO, "no safe exit", "--list-steps");
	end_checks(&checks);
	steps.found = -E2BIG;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", DOCTOR_NO, "", "PATH:");
	end_checks(&checks);
}

static struct doctor_checks judge_gpu(const struct doctor_process_gpu *gpu)
{
	struct doctor_checks checks = {.tgid = 42};

	doctor_process_gpu_judge(gpu, 42, &checks);
	return checks;
}

static void each_state_of_a_shim_has_its_words(void **state)
{
	struct doctor_process_gpu gpu = {.shim = DOCTOR_SHIM_NOT_CUDA};
	struct doctor_checks checks = judge_gpu(&gpu);

	(void)state;
	assert_check(&checks, "GPU records", DOCTOR_NOTE, "does not use CUDA", NULL);
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_REST;
	checks = judge_gpu(&gpu);
	assert_check(&checks, "GPU records", DOCTOR_OK, "at rest", NULL);
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_LEFT;
	checks = judge_gpu(&gpu);
	assert_check(&checks, "GPU records", DOCTOR_OK, "just left", NULL);
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_DEAD;
	checks = judge_gpu(&gpu);
	assert_check(&checks, "GPU records", DOCTOR_WARN, "given up", "restart");
	end_checks(&checks);
	gpu.shim = DOCTOR_SHIM_BAD;
	hear(&gpu.words, "another tracer reads them");
	checks = judge_gpu(&gpu);
	assert_check(&checks, "GPU records", DOCTOR_WARN, "another tracer", "--gpu off");
	end_checks(&checks);
	gpu.mode = GPU_OFF;
	checks = judge_gpu(&gpu);
	assert_check(&checks, "GPU records", DOCTOR_NOTE, "off", NULL);
	end_checks(&checks);
}

static void what_gpu_require_lacks_is_an_obstacle(void **state)
{
	static const enum doctor_shim lacking[] = {DOCTOR_SHIM_UNKNOWN, DOCTOR_SHIM_NOT_CUDA,
						   DOCTOR_SHIM_ABSENT, DOCTOR_SHIM_DEAD,
						   DOCTOR_SHIM_BAD};
	struct doctor_process_gpu gpu = {.mode = GPU_REQUIRE};
	struct doctor_checks checks;

	(void)state;
	for (size_t i = 0; i < sizeof(lacking) / sizeof(*lacking); i++) {
		gpu.shim = lacking[i];
		checks = judge_gpu(&gpu);
		assert_check(&checks, "GPU records", DOCTOR_NO, "", "");
		end_checks(&checks);
	}
}

static void an_absent_shim_can_be_injected_or_not(void **state)
{
	struct doctor_process_gpu gpu = {.shim = DOCTOR_SHIM_ABSENT, .verdict_made = true};
	struct doctor_checks checks = judge_gpu(&gpu);

	(void)state;
	assert_check(&checks, "GPU records", DOCTOR_WARN, "uses CUDA", "--gpu=inject, or restart");
	assert_check(&checks, "--gpu=inject", DOCTOR_OK, "would load", NULL);
	end_checks(&checks);
	gpu.mode = GPU_INJECT;
	checks = judge_gpu(&gpu);
	assert_int_equal(doctor_count(&checks, DOCTOR_OK), checks.items.count);
	end_checks(&checks);
	inject_verdict_add(&gpu.verdict, INJECT_REFUSAL, "libc", "is musl");
	checks = judge_gpu(&gpu);
	assert_check(&checks, "GPU records", DOCTOR_WARN, "uses CUDA", "restart it");
	assert_check(&checks, "--gpu=inject", DOCTOR_NOTE, "libc: is musl", NULL);
	end_checks(&checks);
	doctor_process_gpu_clear(&gpu);
}

static void engines_are_named_as_p_wants_them(void **state)
{
	static const struct doctor_engines engines = {
		.items = {{.tgid = 5, .comm = "node", .steps = "llama_decode", .cuda = true},
			  {.tgid = 6, .comm = "python3", .cuda = true}},
		.count = 2,
		.not_looked = 3};
	struct doctor_engines none = {.count = 0};
	struct doctor_checks checks = {.tgid = 0};

	(void)state;
	doctor_engines_judge(&engines, &checks);
	assert_string_equal(checks.items.items[0].finding, "-p 5 (node): llama_decode; uses CUDA");
	assert_string_equal(checks.items.items[1].finding,
			    "-p 6 (python3): uses CUDA, no known step function");
	assert_check(&checks, "engines", DOCTOR_NOTE, "3 processes", NULL);
	end_checks(&checks);
	doctor_engines_judge(&none, &checks);
	assert_check(&checks, "engines", DOCTOR_NOTE, "none found", NULL);
	end_checks(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_named_with_what_it_runs),
		cmocka_unit_test(a_process_that_is_stopped_or_traced_is_a_limit),
		cmocka_unit_test(a_process_that_cannot_be_looked_at_is_an_obstacle),
		cmocka_unit_test(step_functions_are_named_with_their_place),
		cmocka_unit_test(without_a_step_function_there_are_intervals),
		cmocka_unit_test(a_step_that_cannot_be_resolved_is_an_obstacle),
		cmocka_unit_test(each_state_of_a_shim_has_its_words),
		cmocka_unit_test(what_gpu_require_lacks_is_an_obstacle),
		cmocka_unit_test(an_absent_shim_can_be_injected_or_not),
		cmocka_unit_test(engines_are_named_as_p_wants_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
