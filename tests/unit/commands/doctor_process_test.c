/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Doctor's checks of processes, step functions and engines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "commands/doctor_process.h"
#include "doctor_fixture.h"

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

static struct findings judge(const struct doctor_process *process)
{
	struct findings checks = {.tgid = process->tgid};

	doctor_process_judge(process, &checks);
	return checks;
}

static void a_process_is_named_with_what_it_runs(void **state)
{
	struct doctor_process process = good();
	struct findings checks = judge(&process);

	(void)state;
	assert_int_equal(checks.items.count, 1);
	assert_check(&checks, "process", FINDING_OK,
		     "llama-server, user 1000, 12 threads, /usr/bin/llama-server", NULL);
	end_checks(&checks);
	process.replaced = true;
	process.own_uid = 1000;
	process.threads = 1;
	process.inner_pid = 1;
	checks = judge(&process);
	assert_check(&checks, "process", FINDING_OK,
		     "user 1000 (this user), 1 thread, /usr/bin/llama-server (replaced", NULL);
	assert_check(&checks, "container", FINDING_OK, "PID 1", NULL);
	end_checks(&checks);
}

static void a_process_that_is_stopped_or_traced_is_a_limit(void **state)
{
	struct doctor_process process = good();
	struct findings checks;

	(void)state;
	process.state = 'T';
	checks = judge(&process);
	assert_check(&checks, "state", FINDING_WARN, "stopped", "kill -CONT 42");
	end_checks(&checks);
	process.tracer = 7;
	strcpy(process.tracer_comm, "gdb");
	checks = judge(&process);
	assert_check(&checks, "state", FINDING_WARN, "process 7 (gdb)", "end");
	end_checks(&checks);
}

static void memory_that_may_not_be_read_is_noted(void **state)
{
	struct doctor_process process = good();
	struct findings checks;

	(void)state;
	process.look_err = -EPERM;
	checks = judge(&process);
	assert_check(&checks, "looks", FINDING_NOTE, "memory may not be read", "CAP_SYS_PTRACE");
	end_checks(&checks);
	process.look_err = -EACCES;
	process.may_trace = true;
	checks = judge(&process);
	assert_check(&checks, "looks", FINDING_NOTE, "memory may not be read",
		     "CAP_DAC_READ_SEARCH");
	end_checks(&checks);
	/* No capability helps there. */
	process.ptrace_scope = 3;
	checks = judge(&process);
	assert_check(&checks, "looks", FINDING_NOTE, "memory may not be read", "at the next boot");
	end_checks(&checks);
}

static void limits_that_are_hidden_are_told_of(void **state)
{
	const struct cgroup_limits limits = {.memory_bytes = UINT64_MAX, .hidden = true};
	struct findings checks = {0};

	(void)state;
	doctor_process_judge_limits(&limits, &checks);
	assert_check(&checks, "limits", FINDING_NOTE, "not known", "--cgroupns=host");
	end_checks(&checks);
}

static void a_process_that_cannot_be_looked_at_is_an_obstacle(void **state)
{
	struct doctor_process process = {.tgid = 42, .err = -ESRCH};
	struct findings checks;

	(void)state;
	hear(&process.words, "process 42: no such process");
	checks = judge(&process);
	assert_check(&checks, "process", FINDING_FAIL, "no such process", "doctor");
	end_checks(&checks);
	process.err = -EPERM;
	checks = judge(&process);
	assert_check(&checks, "process", FINDING_FAIL, "cannot be read", "sudo");
	end_checks(&checks);
	process.may_trace = true;
	checks = judge(&process);
	assert_check(&checks, "process", FINDING_FAIL, "cannot be read", "security module");
	end_checks(&checks);
	process.err = -EINVAL;
	checks = judge(&process);
	assert_check(&checks, "process", FINDING_FAIL, "", "not one of its threads");
	end_checks(&checks);
	process.err = -EIO;
	checks = judge(&process);
	assert_check(&checks, "process", FINDING_FAIL, "", "kernel's log");
	end_checks(&checks);
}

static struct step_function *make_function(const char *name)
{
	struct step_function *function = step_function_new();

	assert_non_null(function);
	function->name = strdup(name);
	function->path = strdup("/lib/libllama.so");
	function->address = 0x1f0;
	assert_int_equal(vec_push(&function->exit_offsets, 8), 0);
	return function;
}

static struct findings judge_steps(const struct doctor_steps *steps)
{
	struct findings checks = {.tgid = 42};

	doctor_steps_judge(steps, &checks);
	return checks;
}

static void step_functions_are_named_with_their_place(void **state)
{
	struct doctor_steps steps = {.found = 1, .interval_ns = 100000000};
	struct step_function *llama = make_function("llama_decode");
	struct findings checks;

	(void)state;
	assert_int_equal(vec_push(&steps.functions, llama), 0);
	llama->builtin = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_OK,
		     "llama_decode, 1 exit, from the built-in table, /lib/libllama.so+0x1f0", NULL);
	end_checks(&checks);
	llama->exit_offsets.count = 0;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_OK,
		     "llama_decode, ends at its call sites, from", NULL);
	end_checks(&checks);
	llama->tail_calls = 2;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_OK,
		     "llama_decode, 2 tail calls; ends at its call sites, from", NULL);
	end_checks(&checks);
	steps.probe_err = -EOPNOTSUPP;
	hear(&steps.words, "cannot be probed");
	checks = judge_steps(&steps);
	assert_check(&checks, "step probes", FINDING_WARN, "intervals of 100 ms", "--step");
	end_checks(&checks);
	steps.named = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step probes", FINDING_FAIL, "cannot be probed", "--step");
	end_checks(&checks);
	steps.probe_err = 0;
	llama->uretprobe = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "aborts", "--uretprobe");
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void without_a_step_function_there_are_intervals(void **state)
{
	struct doctor_steps steps = {.interval_ns = 100000000};
	struct findings checks = judge_steps(&steps);

	(void)state;
	assert_check(&checks, "step function", FINDING_WARN, "intervals of 100 ms", "--step");
	end_checks(&checks);
	steps.stripped = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals", "--symbols");
	end_checks(&checks);
	steps.idle = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals", "idle");
	end_checks(&checks);
	assert_int_equal(vec_push(&steps.candidates, make_function("decode")), 0);
	assert_int_equal(vec_push(&steps.candidates, make_function("forward")), 0);
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals",
		     "--step 'decode', --step 'forward'");
	end_checks(&checks);
	steps.named = true;
	hear(&steps.words, "--step x: no such function");
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_FAIL, "--step x", "--list-steps -p 42");
	end_checks(&checks);
	steps.waits = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "until it is loaded", "'decode'");
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void of_a_launcher_the_process_with_the_engine_is_named(void **state)
{
	struct doctor_steps steps = {
		.interval_ns = 100000000,
		.idle = true,
		.descendant = {.tgid = 4711, .is_child = true, .name = "llama-server"}};
	struct findings checks = judge_steps(&steps);

	(void)state;
	assert_check(&checks, "step function", FINDING_WARN, "intervals of 100 ms",
		     "its child 4711 (llama-server), which has such a function: ferrum-bpftrace "
		     "doctor 4711, then ferrum-bpftrace -p 4711; -p 42 -f traces both");
	end_checks(&checks);
	/* A launcher in Python too. */
	steps.is_python = true;
	steps.wants_python = true;
	steps.named = true;
	strcpy(steps.options, " --step 'a b'");
	hear(&steps.words, "--step a b: no such function");
	steps.descendant.is_child = false;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_FAIL, "--step a b",
		     "its descendant 4711 (llama-server), which has such a function: "
		     "ferrum-bpftrace doctor 4711 --step 'a b', then ferrum-bpftrace -p 4711 "
		     "--step 'a b'; -p 42 -f traces both");
	end_checks(&checks);
	/* As many steps as are kept, twice, and the longest numbers. */
	memset(steps.options, 'x', sizeof(steps.options) - 1);
	memset(steps.descendant.name, 'n', sizeof(steps.descendant.name) - 1);
	steps.descendant.tgid = 4194304;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_FAIL, "--step a b",
		     "xxx; -p 42 -f traces both");
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void what_f_traces_too_may_have_the_step(void **state)
{
	struct doctor_steps steps = {
		.named = true,
		.follows = true,
		.descendant = {.tgid = 4711, .is_child = true, .name = "llama-server"}};
	struct findings checks = judge_steps(&steps);

	(void)state;
	assert_check(&checks, "step function", FINDING_NOTE,
		     "none in it; its child 4711 (llama-server), which -f traces too, has one",
		     NULL);
	end_checks(&checks);
}

static void one_process_with_the_step_suffices(void **state)
{
	struct doctor_steps steps = {.named = true, .wants_python = true};

	(void)state;
	assert_false(doctor_steps_suffice(&steps, true));
	steps.follows = true;
	assert_false(doctor_steps_suffice(&steps, false));
	assert_true(doctor_steps_suffice(&steps, true));
	steps.wants_python = false;
	assert_false(doctor_steps_suffice(&steps, true));
	steps.descendant.tgid = 4711;
	assert_true(doctor_steps_suffice(&steps, false));
	/* It cannot be probed. */
	steps.found = -E2BIG;
	assert_false(doctor_steps_suffice(&steps, false));
	steps = (struct doctor_steps){.alone = true};
	assert_false(doctor_steps_suffice(&steps, false));
	steps.follows = true;
	assert_true(doctor_steps_suffice(&steps, false));
	steps = (struct doctor_steps){.found = 1};
	assert_true(doctor_steps_suffice(&steps, false));
}

static void what_suffices_makes_a_failure_a_warning(void **state)
{
	struct findings checks = {.tgid = 42};

	(void)state;
	findings_add(&checks, FINDING_FAIL, "step function", "nothing matches");
	findings_advise(&checks, "name one");
	findings_add(&checks, FINDING_FAIL, "step probes", "refused");
	findings_advise(&checks, "name one");
	doctor_ease(&checks, "step function");
	assert_check(&checks, "step function", FINDING_WARN, "nothing matches", "name one");
	assert_check(&checks, "step probes", FINDING_FAIL, "refused", "name one");
	end_checks(&checks);
}

static void what_was_found_by_stacks_is_proposed_ready_to_paste(void **state)
{
	struct doctor_steps steps = {.interval_ns = 100000000,
				     .searched = true,
				     .search_end = STEP_SEARCH_FOUND,
				     .best = "/opt/my engine/serve+0x1500",
				     .best_per_s = 183.94,
				     .best_mean_ms = 2.3612,
				     .best_share = 0.988};
	struct findings checks = judge_steps(&steps);

	(void)state;
	assert_int_equal(checks.items.count, 1);
	assert_string_equal(checks.items.items[0].remedy,
			    "use --step '/opt/my engine/serve+0x1500': a busy thread is in it for "
			    "99 % of its CPU time, by its stacks; it was probed for two seconds, "
			    "and is called as a step is, 183.9 times a second, mean 2.361 ms");
	end_checks(&checks);
	snprintf(steps.best_name, sizeof(steps.best_name), "%s", "Turn::go");
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals",
		     "use --step '/opt/my engine/serve+0x1500' (Turn::go): a busy");
	end_checks(&checks);
	/* What would be cut is no proposal. */
	memset(steps.best, 'x', FINDING_TEXT_MAX);
	checks = judge_steps(&steps);
	assert_null(strstr(checks.items.items[0].remedy, "xxx"));
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void what_a_search_by_stacks_came_to_is_said(void **state)
{
	struct doctor_steps steps = {
		.interval_ns = 100000000, .searched = true, .search_end = STEP_SEARCH_NONE};
	struct findings checks = judge_steps(&steps);

	(void)state;
	assert_check(&checks, "step function", FINDING_WARN, "intervals",
		     "no regular step found by the stacks of its busy threads; name the function");
	end_checks(&checks);
	steps.stripped = true;
	steps.search_end = STEP_SEARCH_STARVED;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals",
		     "its threads are short of CPUs, so their stacks were not searched; use "
		     "--symbols FILE");
	end_checks(&checks);
	steps.search_end = STEP_SEARCH_IDLE;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals",
		     "nearly idle: run doctor again while it serves a request; or use --symbols");
	end_checks(&checks);
	steps.search_end = STEP_SEARCH_COSTLY;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals", "use --symbols");
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void without_a_step_function_probes_alone_measure_nothing(void **state)
{
	struct doctor_steps steps = {.alone = true, .interval_ns = 100000000};
	struct findings checks = judge_steps(&steps);

	(void)state;
	assert_check(&checks, "step function", FINDING_FAIL, "nothing else", "--step");
	end_checks(&checks);
	steps.named = true;
	steps.waits = true;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "nothing is measured until", "--step");
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void candidates_are_whole_and_quoted_or_left_out(void **state)
{
	struct doctor_steps steps = {.interval_ns = 100000000};
	char longest[FINDING_TEXT_MAX], whole[200];
	struct findings checks;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memset(whole, 'y', sizeof(whole) - 1);
	whole[sizeof(whole) - 1] = '\0';
	assert_int_equal(vec_push(&steps.candidates, make_function(longest)), 0);
	assert_int_equal(vec_push(&steps.candidates, make_function(whole)), 0);
	assert_int_equal(vec_push(&steps.candidates, make_function("<A<'a> as B>::step")), 0);
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_WARN, "intervals", whole);
	assert_check(&checks, "step function", FINDING_WARN, "intervals",
		     "--step '<A<'\\''a> as B>::step'");
	assert_null(strstr(checks.items.items[0].remedy, "xxx"));
	end_checks(&checks);
	doctor_steps_clear(&steps);
}

static void a_step_that_cannot_be_resolved_is_an_obstacle(void **state)
{
	struct doctor_steps steps = {.found = -ENOTSUP};
	struct findings checks;

	(void)state;
	hear(&steps.words, "no safe exit");
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_FAIL, "no safe exit", "--list-steps");
	end_checks(&checks);
	steps.found = -E2BIG;
	checks = judge_steps(&steps);
	assert_check(&checks, "step function", FINDING_FAIL, "", "PATH:");
	end_checks(&checks);
}

static void engines_are_named_as_p_wants_them(void **state)
{
	static const struct doctor_engines engines = {
		.items = {{.tgid = 5, .comm = "node", .steps = "llama_decode", .cuda = true},
			  {.tgid = 6, .comm = "python3", .cuda = true}},
		.count = 2,
		.not_looked = 3};
	struct doctor_engines none = {.count = 0};
	struct findings checks = {.tgid = 0};

	(void)state;
	doctor_engines_judge(&engines, &checks);
	assert_string_equal(checks.items.items[0].text, "-p 5 (node): llama_decode; uses CUDA");
	assert_string_equal(checks.items.items[1].text,
			    "-p 6 (python3): uses CUDA; no known step function");
	assert_check(&checks, "engines", FINDING_NOTE, "3 processes", NULL);
	end_checks(&checks);
	doctor_engines_judge(&none, &checks);
	assert_check(&checks, "engines", FINDING_NOTE, "none found", NULL);
	end_checks(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_named_with_what_it_runs),
		cmocka_unit_test(a_process_that_is_stopped_or_traced_is_a_limit),
		cmocka_unit_test(memory_that_may_not_be_read_is_noted),
		cmocka_unit_test(limits_that_are_hidden_are_told_of),
		cmocka_unit_test(a_process_that_cannot_be_looked_at_is_an_obstacle),
		cmocka_unit_test(step_functions_are_named_with_their_place),
		cmocka_unit_test(without_a_step_function_there_are_intervals),
		cmocka_unit_test(of_a_launcher_the_process_with_the_engine_is_named),
		cmocka_unit_test(what_f_traces_too_may_have_the_step),
		cmocka_unit_test(one_process_with_the_step_suffices),
		cmocka_unit_test(what_suffices_makes_a_failure_a_warning),
		cmocka_unit_test(without_a_step_function_probes_alone_measure_nothing),
		cmocka_unit_test(what_was_found_by_stacks_is_proposed_ready_to_paste),
		cmocka_unit_test(what_a_search_by_stacks_came_to_is_said),
		cmocka_unit_test(candidates_are_whole_and_quoted_or_left_out),
		cmocka_unit_test(a_step_that_cannot_be_resolved_is_an_obstacle),
		cmocka_unit_test(engines_are_named_as_p_wants_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
