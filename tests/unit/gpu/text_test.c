/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include "gpu_step_fixture.h"
#include "gpu/text.h"

static const char *idle_text(const struct gpu_figures *figures)
{
	static char text[GPU_IDLE_TEXT_SIZE];
	const struct gpu_text about = {figures, GPU_STEP_NS, 0, FBT_ARCH_X86_64, false};

	return gpu_idle_text(&about, text);
}

static void idle_time_is_told_by_what_the_gpu_waited_for(void **state)
{
	struct gpu_figures figures = make_figures();

	(void)state;
	assert_string_equal(idle_text(&figures),
			    "idle 1.80 ms of 6.20 ms: 1.10 ms futex (blocked), 400 us user code, "
			    "199 us in launch calls, 100 us queued");
}

static void a_busy_gpu_waited_for_nothing(void **state)
{
	struct gpu_figures figures = {.busy_ns = GPU_STEP_NS};

	(void)state;
	assert_string_equal(idle_text(&figures), "idle 0 ns of 6.20 ms");
}

static void short_parts_are_summed_up(void **state)
{
	struct gpu_figures figures = make_figures();

	(void)state;
	figures.unattributed_ns = 50000;
	figures.wait_unknown_ns = 2000;
	assert_non_null(strstr(idle_text(&figures), ", 100 us queued, 52.0 us more"));
}

static void what_does_not_matter_is_not_told(void **state)
{
	struct gpu_figures figures = make_figures();

	(void)state;
	assert_non_null(strstr(idle_text(&figures), "queued"));
	figures.queue_ns = 10000;
	assert_null(strstr(idle_text(&figures), "queued"));
	assert_null(strstr(idle_text(&figures), "more"));
}

static void of_an_incomplete_step_only_the_least_is_told(void **state)
{
	struct gpu_figures figures = make_figures();
	const struct gpu_text about = {&figures, GPU_STEP_NS, 0, FBT_ARCH_X86_64, true};
	char text[GPU_IDLE_TEXT_SIZE];

	(void)state;
	assert_string_equal(gpu_idle_text(&about, text),
			    "busy at least 4.40 ms of 6.20 ms, GPU records missing");
}

static void calls_that_are_not_among_the_longest_are_others(void **state)
{
	struct gpu_figures figures = make_figures();
	const struct gpu_text about = {&figures, GPU_STEP_NS, 0, FBT_ARCH_X86_64, false};
	char text[GPU_IDLE_TEXT_SIZE];

	(void)state;
	figures.wait_blocked_ns += 500000;
	figures.wait_syscall_ns = 300000;
	figures.wait_calls[1] = (struct gpu_wait_call){NR_READ, false, 250000};
	figures.wait_user_ns = 0;
	gpu_wait_text(&about, text);
	assert_string_equal(text, "1.10 ms futex (blocked), 500 us other calls (blocked), "
				  "250 us read, 50.0 us other calls");
}

static void what_the_host_did_may_not_be_known(void **state)
{
	struct gpu_figures figures = {.wait_unknown_ns = 1000000, .idle_ns = 2000000};

	(void)state;
	figures.unattributed_ns = 1000000;
	assert_string_equal(idle_text(&figures),
			    "idle 2.00 ms of 6.20 ms: 1.00 ms host (calls not recorded), "
			    "1.00 ms not attributed");
}

static void calls_that_exceed_their_sum_leave_no_others(void **state)
{
	struct gpu_figures figures = make_figures();
	const struct gpu_text about = {&figures, GPU_STEP_NS, 0, FBT_ARCH_X86_64, false};
	char text[GPU_IDLE_TEXT_SIZE];

	(void)state;
	figures.wait_blocked_ns = 1000000;
	gpu_wait_text(&about, text);
	assert_string_equal(text, "1.10 ms futex (blocked), 400 us user code");
}

static void a_thread_that_waited_for_a_cpu_may_have_done_so_then(void **state)
{
	struct gpu_figures figures = make_figures();
	struct gpu_text about = {&figures, GPU_STEP_NS, 40000, FBT_ARCH_X86_64, false};
	char text[GPU_IDLE_TEXT_SIZE];

	(void)state;
	assert_string_equal(gpu_wait_text(&about, text),
			    "1.10 ms futex (blocked), 400 us user code");
	about.run_delay_ns++;
	assert_string_equal(gpu_wait_text(&about, text),
			    "1.10 ms futex (blocked), 400 us user code and run queue");
}

/* A capture may hold any figures. No text exceeds its buffer, and no difference goes below zero. */
static void figures_that_make_no_sense_are_text_too(void **state)
{
	struct gpu_figures figures;

	(void)state;
	memset(&figures, 0xff, sizeof(figures));
	for (int i = 0; i < GPU_WAIT_CALLS_MAX; i++)
		figures.wait_calls[i].blocked = true;
	assert_in_range(strlen(idle_text(&figures)), 1, GPU_IDLE_TEXT_SIZE - 1);
}

static void verdicts_have_words(void **state)
{
	(void)state;
	assert_string_equal(gpu_bound_words(GPU_BOUND_LAUNCH), "launch-bound");
	assert_string_equal(gpu_bound_words(GPU_BOUND_WAIT), "wait-bound");
	assert_string_equal(gpu_bound_words((enum gpu_bound)99), "of unknown bound");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_time_is_told_by_what_the_gpu_waited_for),
		cmocka_unit_test(a_busy_gpu_waited_for_nothing),
		cmocka_unit_test(short_parts_are_summed_up),
		cmocka_unit_test(what_does_not_matter_is_not_told),
		cmocka_unit_test(calls_that_are_not_among_the_longest_are_others),
		cmocka_unit_test(of_an_incomplete_step_only_the_least_is_told),
		cmocka_unit_test(what_the_host_did_may_not_be_known),
		cmocka_unit_test(calls_that_exceed_their_sum_leave_no_others),
		cmocka_unit_test(a_thread_that_waited_for_a_cpu_may_have_done_so_then),
		cmocka_unit_test(figures_that_make_no_sense_are_text_too),
		cmocka_unit_test(verdicts_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
