/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/step.h"
#include "profile/records.h"

#define KINDS 8

struct sent {
	struct fbt_kind kinds[KINDS];
	struct fbt_step steps[KINDS];
	size_t kind_count;
	size_t step_count;
	struct fbt_window window;
	size_t end_count;
};

static void keep(void *ctx, const void *data, size_t size)
{
	const struct fbt_header *header = data;
	struct sent *sent = ctx;

	if (header->type == FBT_EVENT_KIND && sent->kind_count < KINDS)
		memcpy(&sent->kinds[sent->kind_count++], data, sizeof(struct fbt_kind));
	if (header->type == FBT_EVENT_STEP && sent->step_count < KINDS)
		memcpy(&sent->steps[sent->step_count++], data, sizeof(struct fbt_step));
	if (header->type == FBT_EVENT_WINDOW)
		memcpy(&sent->window, data, sizeof(sent->window));
	sent->end_count += header->type == FBT_EVENT_WINDOW_END;
}

/* A step with these members of its shape, each followed by a comma. */
#define STEP_OF(pid, members)                                                                      \
	"{\"event\":\"step_prof\",\"shape\":{" members "\"pid\":" pid                              \
	",\"tid\":7,\"start_us\":10},"                                                             \
	"\"stage_us\":{\"total\":7},\"source\":\"ferrum-bpftrace\"}\n"
#define STEP(members) STEP_OF("7", members)

#define CALLS                                                                                      \
	"{\"event\":\"syscall_prof\",\"shape\":{\"futex_calls\":3},\"stage_us\":{\"futex\":2},"    \
	"\"source\":\"ferrum-bpftrace\"}\n"

#define WINDOW                                                                                     \
	"{\"event\":\"window_prof\",\"shape\":{\"detail\":\"steps\"},\"stage_us\":{\"total\":900}" \
	","                                                                                        \
	"\"source\":\"ferrum-bpftrace\"}\n"

/* A step with these members and times, each followed by a comma. */
#define TIMED(members, times)                                                                      \
	"{\"event\":\"step_prof\",\"shape\":{" members "\"pid\":7,\"tid\":7,\"start_us\":10},"     \
	"\"stage_us\":{" times "\"gap\":1},\"source\":\"ferrum-bpftrace\"}\n"

#define WINDOW_OF(pids, epoch_us)                                                                  \
	"{\"event\":\"window_prof\",\"shape\":{\"pids\":\"" pids                                   \
	"\",\"epoch_monotonic_us\":" epoch_us                                                      \
	"},\"stage_us\":{\"total\":900},\"source\":\"ferrum-bpftrace\"}\n"

static struct sent send(const char *text)
{
	struct sent sent = {.kind_count = 0};
	const struct record_output output = {keep, &sent};
	char path[] = "/tmp/fbt-profile-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = profile_send_records(path, &output);
	unlink(path);
	assert_int_equal(err, 0);
	return sent;
}

static void each_end_of_a_step_is_known_again(void **state)
{
	static const char *const names[] = {"return", "unwound", "truncated", "exited", "raised"};
	struct sent sent = send(STEP("\"kind\":\"f\",\"end\":\"return\",") STEP(
		"\"kind\":\"f\",\"end\":\"unwound\",") STEP("\"kind\":\"f\",\"end\":\"truncated\",")
					STEP("\"kind\":\"f\",\"end\":\"exited\",")
						STEP("\"kind\":\"f\",\"end\":\"raised\","));

	(void)state;
	assert_int_equal(sent.step_count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_string_equal(step_end_name((enum fbt_step_end)sent.steps[i].end), names[i]);
}

static bool is_python(const char *text)
{
	struct sent sent = send(text);

	assert_int_equal(sent.kind_count, 1);
	assert_int_equal(sent.steps[0].kind, sent.kinds[0].kind);
	return sent.kinds[0].header.flags & FBT_KIND_PYTHON;
}

/* Their classes are by tokens, because their waits look like work. */
static void a_function_with_tokens_and_no_address_is_one_of_python(void **state)
{
	(void)state;
	assert_true(
		is_python(STEP("\"kind\":\"f\",\"step_source\":\"function\",\"arg.n_tokens\":3,")));
	assert_true(
		is_python(STEP("\"kind\":\"f\",\"step_source\":\"function\",\"arg.n_waited\":3,")));
}

/* vLLM's first step may have had nothing to do. */
static void arguments_may_begin_with_a_later_step(void **state)
{
	struct sent sent = send(STEP("\"kind\":\"f\",\"arg.n_requests\":0,") STEP(
		"\"kind\":\"f\",\"arg.n_requests\":1,\"arg.n_tokens\":3,"));

	(void)state;
	assert_int_equal(sent.kind_count, 1);
	assert_int_equal(sent.kinds[0].arg_count, 2);
	assert_true(sent.kinds[0].header.flags & FBT_KIND_PYTHON);
	assert_int_equal(sent.steps[0].arg_mask, 1);
	assert_int_equal(sent.steps[1].arg_mask, 3);
	assert_int_equal(sent.steps[1].args[1], 3);
}

/* Only the last window is sent, with its own functions. */
static void functions_are_those_of_the_window_that_is_sent(void **state)
{
	struct sent sent = send(STEP("\"kind\":\"old\",\"arg.n_tokens\":1,")
					WINDOW STEP("\"kind\":\"f\",\"arg.n_waited\":0,") WINDOW);

	(void)state;
	assert_int_equal(sent.step_count, 1);
	assert_int_equal(sent.kind_count, 1);
	assert_int_equal(sent.kinds[0].kind, 1);
	assert_int_equal(sent.kinds[0].arg_count, 1);
}

/* A run that was killed is the last one of the file all the same. */
static void a_window_without_an_end_is_the_last_one(void **state)
{
	struct sent sent = send(STEP("\"kind\":\"f\",") WINDOW_OF("7", "7")
					STEP_OF("8", "\"kind\":\"after\",\"arg.n\":1,"));

	(void)state;
	assert_int_equal(sent.step_count, 1);
	assert_int_equal(sent.steps[0].tgid, 8);
	assert_int_equal(sent.kinds[0].arg_count, 1);
	assert_int_equal(sent.window.start_ns, NS_PER_S);
	assert_int_equal(sent.end_count, 0);
}

/* With --flag, the windows of several processes are open at once. */
static void windows_that_interleave_have_the_steps_of_their_processes(void **state)
{
	struct sent sent = send(STEP_OF("8", "\"kind\":\"old\",") WINDOW_OF("8", "5") STEP_OF(
		"8", "\"kind\":\"g\",") STEP_OF("7", "\"kind\":\"f\",\"arg.n\":1,")
					STEP_OF("8", "\"kind\":\"f\",") WINDOW_OF("7", "6")
						WINDOW_OF("8", "9"));

	(void)state;
	assert_int_equal(sent.step_count, 2);
	assert_int_equal(sent.steps[0].tgid, 8);
	assert_int_equal(sent.steps[1].tgid, 8);
	assert_int_equal(sent.kind_count, 2);
	assert_int_equal(sent.kinds[1].arg_count, 0);
	assert_int_equal(sent.window.start_ns, 9 * NS_PER_US);
	assert_int_equal(sent.end_count, 1);
}

/* Of a process whose window was open while that of another one ended, and when the run was killed.
 */
static void an_open_window_has_its_steps_before_the_end_of_another(void **state)
{
	struct sent sent =
		send(STEP_OF("7", "") STEP_OF("8", "") WINDOW_OF("7", "6") STEP_OF("8", ""));

	(void)state;
	assert_int_equal(sent.step_count, 2);
	assert_int_equal(sent.steps[0].tgid, 8);
	assert_int_equal(sent.steps[1].tgid, 8);
}

/* The line of a step of another process may come between. */
static void calls_are_of_the_step_before_them(void **state)
{
	struct sent sent = send(STEP_OF("8", "") STEP_OF("7", "") CALLS WINDOW_OF("7", "6")
					WINDOW_OF("8", "6"));

	(void)state;
	assert_int_equal(sent.step_count, 1);
	assert_int_equal(sent.steps[0].sums[FBT_FUTEX].calls, 0);
}

/* The total of an interval is the sum of its threads. */
static void an_interval_is_as_long_as_the_clock_says(void **state)
{
	struct sent sent = send(TIMED("", "\"total\":12000,\"wall\":1000,"));

	(void)state;
	assert_int_equal(sent.steps[0].thread_ns, 12000 * NS_PER_US);
	assert_int_equal(sent.steps[0].end_ns - sent.steps[0].start_ns, 1000 * NS_PER_US);
}

static void limits_other_threads_and_handlers_are_those_of_the_profile(void **state)
{
	struct sent sent = send(TIMED(
		"\"throttled_periods\":3,\"starved_tid\":9,\"signal_handlers\":2,",
		"\"throttled_all_cpus\":5,\"starved\":6,\"other_threads_cpu\":7,"
		"\"other_threads_cpu_wait\":8,\"other_threads_blocked\":9,\"signal_handlers\":4,"));
	const struct fbt_step *step = &sent.steps[0];

	(void)state;
	assert_int_equal(step->limits.throttled_periods, 3);
	assert_int_equal(step->limits.throttled_ns, 5 * NS_PER_US);
	assert_int_equal(step->starved_tid, 9);
	assert_int_equal(step->starved_ns, 6 * NS_PER_US);
	assert_int_equal(step->team_ns, 24 * NS_PER_US);
	assert_int_equal(step->team_cpu_ns, 7 * NS_PER_US);
	assert_int_equal(step->team_delay_ns, 8 * NS_PER_US);
	assert_int_equal(step->handlers, 2);
	assert_int_equal(step->handlers_ns, 4 * NS_PER_US);
	assert_int_equal(step->header.flags & (FBT_STEP_TEAM_KNOWN | FBT_STEP_TEAM_TIMED |
					       FBT_STEP_HANDLERS_TIMED),
			 FBT_STEP_TEAM_KNOWN | FBT_STEP_TEAM_TIMED | FBT_STEP_HANDLERS_TIMED);
}

static void other_functions_are_not_of_python(void **state)
{
	(void)state;
	assert_false(is_python(STEP("\"kind\":\"f\",\"step_source\":\"function\","
				    "\"step_address\":\"0x10\",\"arg.n_tokens\":3,")));
	assert_false(
		is_python(STEP("\"kind\":\"f\",\"step_source\":\"usdt\",\"arg.n_tokens\":3,")));
	assert_false(is_python(STEP("\"kind\":\"f\",\"step_source\":\"function\",\"arg.n\":3,")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_of_a_step_is_known_again),
		cmocka_unit_test(a_function_with_tokens_and_no_address_is_one_of_python),
		cmocka_unit_test(arguments_may_begin_with_a_later_step),
		cmocka_unit_test(functions_are_those_of_the_window_that_is_sent),
		cmocka_unit_test(a_window_without_an_end_is_the_last_one),
		cmocka_unit_test(windows_that_interleave_have_the_steps_of_their_processes),
		cmocka_unit_test(an_open_window_has_its_steps_before_the_end_of_another),
		cmocka_unit_test(calls_are_of_the_step_before_them),
		cmocka_unit_test(an_interval_is_as_long_as_the_clock_says),
		cmocka_unit_test(limits_other_threads_and_handlers_are_those_of_the_profile),
		cmocka_unit_test(other_functions_are_not_of_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
