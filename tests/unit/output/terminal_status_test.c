/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "escalation_fixture.h"
#include "gpu_step_fixture.h"
#include "output/terminal.h"

#define SECOND UINT64_C(1000000000)
#define START  (1000 * SECOND)

struct fixture {
	struct sink *sink;
	struct window *window;
	int leader;
	int saved;
	char text[4096];
};

/* Makes stderr a terminal. */
static int setup(void **state)
{
	struct winsize size = {.ws_row = 24, .ws_col = 120};
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int follower;

	if (!fixture)
		return -1;
	*state = fixture;
	fixture->sink = sink_status__new();
	fixture->window = window__new();
	fixture->leader = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	if (!fixture->sink || !fixture->window || fixture->leader < 0 || grantpt(fixture->leader) ||
	    unlockpt(fixture->leader))
		return -1;
	fixture->window->record.start_ns = START;
	follower = open(ptsname(fixture->leader), O_RDWR | O_NOCTTY);
	fixture->saved = dup(STDERR_FILENO);
	if (follower < 0 || fixture->saved < 0 || ioctl(follower, TIOCSWINSZ, &size))
		return -1;
	dup2(follower, STDERR_FILENO);
	close(follower);
	setenv("TERM", "xterm", 1);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	fixture->sink->finish(fixture->sink, fixture->window, NULL);
	dup2(fixture->saved, STDERR_FILENO);
	close(fixture->saved);
	close(fixture->leader);
	fixture->sink->free(fixture->sink);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

/* Shows the status line again and returns its text. */
static const char *show(struct fixture *fixture, uint64_t now_ns)
{
	ssize_t length;

	sink_status__show(fixture->sink, fixture->window, now_ns);
	length = read(fixture->leader, fixture->text, sizeof(fixture->text) - 1);
	fixture->text[length > 0 ? length : 0] = '\0';
	return fixture->text;
}

static void add_step(struct fixture *fixture, uint64_t length_ns)
{
	struct step step = {.record = {.kind = 1, .thread_ns = length_ns}};

	step.record.sums[FBT_FUTEX].ns = length_ns / 8;
	assert_int_equal(fixture->sink->write_step(fixture->sink, fixture->window, &step), 0);
}

static void before_the_window_begins_nothing_is_shown(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->record.start_ns = 0;
	assert_string_equal(show(fixture, START), "");
}

static void without_steps_it_says_so(void **state)
{
	assert_string_equal(show(*state, START + 2 * SECOND),
			    "\r\033[K2 s  no step yet  escalated 0  lost 0");
}

/* The figure covers the steps since the line was last shown. */
static void with_gpu_records_it_says_how_busy_the_gpu_is(void **state)
{
	struct fixture *fixture = *state;
	struct step step = {.record = {.kind = 1, .thread_ns = GPU_STEP_NS, .end_ns = GPU_STEP_NS}};

	step.gpu = make_gpu();
	assert_int_equal(fixture->sink->write_step(fixture->sink, fixture->window, &step), 0);
	step_gpu_free(step.gpu);
	assert_non_null(strstr(show(fixture, START + SECOND), "%  none  GPU 71.0 %  escalated"));
	add_step(fixture, 8000000);
	assert_null(strstr(show(fixture, START + 2 * SECOND), "GPU"));
}

static void without_calls_it_says_nothing_of_them(void **state)
{
	struct fixture *fixture = *state;
	struct step step = {.record = {.header.flags = FBT_STEP_CALLS_UNKNOWN,
				       .kind = 1,
				       .thread_ns = 8000000}};

	assert_int_equal(fixture->sink->write_step(fixture->sink, fixture->window, &step), 0);
	assert_string_equal(show(fixture, START + SECOND),
			    "\r\033[K1 s  1.00 steps/s  p50 8.00 ms  escalated 0  lost 0");
	add_step(fixture, 8000000);
	assert_non_null(strstr(show(fixture, START + 2 * SECOND), "syscalls 12.5 %  futex"));
}

static void when_steps_stop_it_says_for_how_long(void **state)
{
	struct fixture *fixture = *state;

	add_step(fixture, 8000000);
	show(fixture, START + SECOND);
	assert_string_equal(show(fixture, START + 4 * SECOND),
			    "\r\033[K4 s  no step for 3 s  escalated 0  lost 0");
}

static void lost_records_are_shown(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->lost.count[FBT_LOST_CALLS] = 1042;
	assert_string_equal(show(fixture, START + SECOND),
			    "\r\033[K1 s  no step yet  escalated 0  lost 1,042");
}

static void the_figures_are_those_since_the_last_line(void **state)
{
	struct fixture *fixture = *state;

	add_step(fixture, 90000000);
	show(fixture, START + SECOND);
	for (int i = 0; i < 118; i++)
		add_step(fixture, 8000000);
	assert_string_equal(
		show(fixture, START + 2 * SECOND),
		"\r\033[K2 s  118 steps/s  p50 8.00 ms  syscalls 12.5 %  futex  escalated 0  "
		"lost 0");
}

static void the_rate_of_a_sampled_function_is_that_of_the_steps_seen(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->sampling[2] = (struct fbt_sampling){.kind = 2, .watched_ns = 1};
	add_step(fixture, 8000000);
	assert_non_null(strstr(show(fixture, START + SECOND), "  1.00 steps/s seen  p50"));
}

static void escalations_are_counted_from_the_start_of_the_window(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();
	struct step step = {.number = 1};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fixture->sink->write_escalation(fixture->sink, fixture->window,
								 &step, &escalation),
				 0);
		escalation.suppressed = true;
	}
	show(fixture, START + SECOND);
	assert_string_equal(show(fixture, START + 2 * SECOND),
			    "\r\033[K2 s  no step yet  escalated 2  lost 0");
}

static void finish_clears_the_line(void **state)
{
	struct fixture *fixture = *state;

	show(fixture, START + SECOND);
	assert_int_equal(fixture->sink->finish(fixture->sink, fixture->window, NULL), 0);
	assert_int_equal(read(fixture->leader, fixture->text, sizeof(fixture->text)), 4);
	assert_memory_equal(fixture->text, "\r\033[K", 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(before_the_window_begins_nothing_is_shown),
		TEST(without_steps_it_says_so),
		TEST(with_gpu_records_it_says_how_busy_the_gpu_is),
		TEST(without_calls_it_says_nothing_of_them),
		TEST(when_steps_stop_it_says_for_how_long),
		TEST(lost_records_are_shown),
		TEST(the_figures_are_those_since_the_last_line),
		TEST(the_rate_of_a_sampled_function_is_that_of_the_steps_seen),
		TEST(escalations_are_counted_from_the_start_of_the_window),
		TEST(finish_clears_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
