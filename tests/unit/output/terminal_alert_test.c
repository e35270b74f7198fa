/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <time.h>
#include "escalation_fixture.h"
#include "gpu_step_fixture.h"
#include "base/log.h"
#include "judge/hang.h"
#include "judge/text.h"
#include "output/terminal.h"
#include "stderr_fixture.h"

#define MS UINT64_C(1000000)

struct fixture {
	struct stderr_fixture *errors;
	struct window *window;
	struct sink *sink;
	struct step step;
	struct escalation escalation;
	char evidence[512];
	char expected[1024];
};

static int set_up(void **state)
{
	struct escalation_thresholds thresholds = escalation_default_thresholds();
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || stderr_setup((void **)&fixture->errors))
		return -1;
	fixture->window = window__new();
	fixture->sink = sink_alert__new(&thresholds);
	if (!fixture->window || !fixture->sink)
		return -1;
	fixture->window->record.arch = FBT_ARCH_X86_64;
	fixture->window->kinds[1].name = strdup("llama_decode");
	fixture->window->kind_known[1] = true;
	fixture->step = (struct step){
		.number = 4711,
		.complete = true,
		.record = {.tgid = 42, .tid = 43, .kind = 1, .thread_ns = 312400000},
	};
	fixture->step.record.sums[FBT_FUTEX] =
		(struct fbt_sum){.ns = 291000999, .calls = 12, .max_ns = 290800999};
	fixture->escalation = make_escalation();
	log_set_level(LOG_INFO);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	stderr_teardown((void **)&fixture->errors);
	fixture->sink->free(fixture->sink);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void escalate(struct fixture *fixture)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(
		sink->write_escalation(sink, fixture->window, &fixture->step, &fixture->escalation),
		0);
}

/* Expects one line that contains begin and ends with the evidence and end. */
static void expect_line(struct fixture *fixture, const char *begin, const char *end)
{
	cause_describe(&fixture->escalation.cause, fixture->window, fixture->evidence,
		       sizeof(fixture->evidence));
	snprintf(fixture->expected, sizeof(fixture->expected), "%s%s%s\n", begin, fixture->evidence,
		 end);
	assert_one_line(fixture->errors, fixture->expected);
}

static void an_escalation_is_one_line(void **state)
{
	struct fixture *fixture = *state;

	escalate(fixture);
	expect_line(fixture, "; lock contention: ", "; nearly all in one call [efficiency_low]");
	assert_one_line(fixture->errors, "#4711 llama_decode 312 ms, 15x usual; lock contention: ");
}

static void a_line_begins_with_the_time_of_day(void **state)
{
	struct fixture *fixture = *state;

	setenv("TZ", "UTC", 1);
	tzset();
	fixture->window->record.realtime_ns = UINT64_C(1700000000) * 1000 * MS;
	fixture->window->record.start_ns = 5 * MS;
	fixture->step.record.start_ns = 1705 * MS;
	fixture->step.record.end_ns = 2017 * MS;
	/* The total of an interval, which is not the time that it took. */
	fixture->step.record.thread_ns = 12 * 312 * MS;
	escalate(fixture);
	/* The window began at 22:13:20; the step came 1.7 s later and took 312 ms. */
	assert_int_equal(strncmp(stderr_text(fixture->errors), "22:13:22 #4711 ", 15), 0);
}

static void a_budget_that_was_given_is_told(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.budget_given = true;
	escalate(fixture);
	assert_one_line(fixture->errors, "#4711 llama_decode 312 ms, budget 21.0 ms; lock ");
}

static void one_that_took_no_longer_than_usual_is_told_by_its_budget(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.usual_ns = 300 * MS;
	escalate(fixture);
	assert_one_line(fixture->errors, "#4711 llama_decode 312 ms, budget 21.0 ms; lock ");
}

static void a_small_category_is_not_told_beside_the_cause(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.cause =
		(struct cause){.kind = CAUSE_COMPUTE, .time_ns = 18 * MS, .usual_known = true};
	fixture->step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = MS, .calls = 1, .max_ns = MS};
	escalate(fixture);
	expect_line(fixture, " usual; compute: ", " [efficiency_low]");
}

static void what_the_gpu_waited_for_is_said(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.gpu = make_gpu();
	fixture->step.record.end_ns = GPU_STEP_NS;
	escalate(fixture);
	step_gpu_free(fixture->step.gpu);
	assert_one_line(fixture->errors, "; nearly all in one call; GPU idle 1.80 ms of 6.20 ms: ");
}

static void gpu_records_that_are_missing_are_said_to_be(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.gpu = make_gpu();
	fixture->step.gpu->complete = false;
	fixture->step.record.end_ns = GPU_STEP_NS;
	escalate(fixture);
	step_gpu_free(fixture->step.gpu);
	assert_one_line(
		fixture->errors,
		"; GPU busy at least 4.40 ms of 6.20 ms, GPU records missing [efficiency_low]\n");
}

static void quiet_says_nothing(void **state)
{
	struct fixture *fixture = *state;

	log_set_level(LOG_WARN);
	escalate(fixture);
	fixture->escalation.suppressed = true;
	escalate(fixture);
	assert_silent(fixture->errors);
}

static void the_process_is_named_if_there_are_several(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(window__touch_process(fixture->window, 42));
	assert_non_null(window__touch_process(fixture->window, 43));
	escalate(fixture);
	assert_one_line(fixture->errors, "#4711 llama_decode of process 42: 312 ms, 15x usual; ");
}

static void the_process_is_named_if_other_windows_have_others(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(window__touch_process(fixture->window, 42));
	sink_alert__name_process(fixture->sink);
	escalate(fixture);
	assert_one_line(fixture->errors, "#4711 llama_decode of process 42: 312 ms, 15x usual; ");
}

static void other_triggers_stand_after_the_reason(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.fired = FIRED(CV_EXCEEDED) | FIRED(EFFICIENCY_LOW);
	fixture->escalation.result.reason = ESCALATION_MEMORY_CLIFF;
	escalate(fixture);
	assert_one_line(fixture->errors, " [memory_cliff, cv_exceeded,efficiency_low]\n");
}

static void both_names_no_trigger_twice(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.fired = FIRED(CV_EXCEEDED) | FIRED(EFFICIENCY_LOW);
	fixture->escalation.result.reason = ESCALATION_BOTH;
	escalate(fixture);
	assert_one_line(fixture->errors, " [cv_exceeded and efficiency_low]\n");
}

static void a_step_that_was_not_judged_is_not_compared(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.judged = false;
	fixture->escalation.fired = FIRED(MANUAL);
	fixture->escalation.result.reason = ESCALATION_MANUAL;
	escalate(fixture);
	assert_one_line(fixture->errors, "llama_decode 312 ms; lock contention: futex 291 ms");
	assert_one_line(fixture->errors, " [manual, not judged]\n");
}

static void without_syscalls_there_is_only_the_cause(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.result.breakdown = (struct breakdown){.total_us = 312400};
	fixture->escalation.worst.duration_ns = 0;
	fixture->step.record.sums[FBT_FUTEX] = (struct fbt_sum){0};
	fixture->escalation.cause = (struct cause){.kind = CAUSE_COMPUTE, .time_ns = 312 * MS};
	escalate(fixture);
	expect_line(fixture, " usual; compute: ", " [efficiency_low]");
}

static void without_calls_the_longest_is_that_of_a_category(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.worst = (struct fbt_call){0};
	fixture->step.record.sums[FBT_FUTEX] =
		(struct fbt_sum){.ns = 291 * MS, .calls = 12, .max_ns = 290 * MS};
	fixture->step.record.sums[FBT_OTHER] = (struct fbt_sum){.ns = 5 * MS, .max_ns = 5 * MS};
	escalate(fixture);
	assert_one_line(fixture->errors,
			", lock at 0x7f00aa10; longest futex 290 ms [efficiency_low]\n");
}

static void where_calls_were_lost_the_longest_may_be_one_of_them(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.complete = false;
	fixture->escalation.worst.nr = 0;
	fixture->escalation.worst.duration_ns = 100 * MS;
	fixture->step.record.sums[FBT_FUTEX] =
		(struct fbt_sum){.ns = 291 * MS, .calls = 12, .max_ns = 290 * MS};
	escalate(fixture);
	assert_one_line(fixture->errors, "; longest futex 290 ms; incomplete");
}

static void the_longest_call_has_its_own_name(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.worst.nr = 232;
	fixture->step.record.sums[FBT_OTHER] = (struct fbt_sum){.ns = 300 * MS, .max_ns = 300 * MS};
	escalate(fixture);
	assert_one_line(fixture->errors,
			", lock at 0x7f00aa10; longest epoll_wait 291 ms [efficiency_low]\n");
}

static void one_call_is_told_once(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.sums[FBT_FUTEX].calls = 1;
	escalate(fixture);
	expect_line(fixture, "; lock contention: ", " [efficiency_low]");
}

/*
 * Evidence of another cause does not name the dominant category, even if it contains the same
 * number.
 */
static void the_dominant_category_is_told_where_the_evidence_does_not(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.cause =
		(struct cause){.kind = CAUSE_COMPUTE, .time_ns = 18 * MS, .usual_known = true};
	escalate(fixture);
	expect_line(fixture,
		    " usual; compute: ", "; futex 291 ms, nearly all in one call [efficiency_low]");
	fixture->escalation.worst.duration_ns = 60 * MS;
	escalate(fixture);
	assert_non_null(strstr(stderr_text(fixture->errors),
			       "; futex 291 ms, longest futex 60.0 ms [efficiency_low]\n"));
	fixture->escalation.cause = make_escalation().cause;
	fixture->escalation.cause.time_ns = 18 * MS;
	fixture->escalation.cause.usual_ns = 291 * MS;
	escalate(fixture);
	assert_non_null(strstr(stderr_text(fixture->errors), "; lock contention: futex 18"));
	assert_non_null(strstr(strstr(stderr_text(fixture->errors), "; lock contention: futex 18"),
			       "; futex 291 ms, longest futex 60.0 ms [efficiency_low]\n"));
}

/*
 * The longest call of the window so far may exceed the interval. It is limited to the interval's
 * sum.
 */
static void the_longest_of_an_interval_is_no_longer_than_its_sum(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.worst = (struct fbt_call){0};
	fixture->step.record.kind = 0;
	fixture->step.record.sums[FBT_FUTEX] =
		(struct fbt_sum){.ns = 80 * MS, .max_ns = UINT64_C(10000) * MS};
	escalate(fixture);
	assert_one_line(fixture->errors, "; futex 80.0 ms, nearly all in one call [");
}

static void an_incomplete_step_says_why(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.complete = false;
	escalate(fixture);
	expect_line(fixture, "; lock contention: ",
		    "; nearly all in one call; incomplete: records lost [efficiency_low]");
}

static void a_step_that_is_still_open_says_so(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.complete = false;
	fixture->step.record.end = FBT_END_TRUNCATED;
	escalate(fixture);
	assert_one_line(fixture->errors,
			"; incomplete: still open when the window ended [efficiency_low]\n");
}

static void a_step_of_a_sampled_function_was_not_open_when_the_window_ended(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.complete = false;
	fixture->step.record.end = FBT_END_TRUNCATED;
	fixture->step.record.header.flags |= FBT_STEP_SAMPLED;
	escalate(fixture);
	assert_one_line(fixture->errors, "; incomplete: cut off [efficiency_low]\n");
}

static void a_step_whose_thread_exited_says_so(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.complete = false;
	fixture->step.record.end = FBT_END_EXITED;
	escalate(fixture);
	assert_one_line(fixture->errors, "; incomplete: its thread exited [efficiency_low]\n");
}

static void names_from_the_target_are_escaped(void **state)
{
	struct fixture *fixture = *state;

	free(fixture->window->kinds[1].name);
	fixture->window->kinds[1].name = strdup("de\033[31mcode\n\xff");
	escalate(fixture);
	assert_one_line(fixture->errors, "#4711 de\\x1b[31mcode\\n\\xff 312 ms");
}

static void a_name_without_end_leaves_room_for_the_rest(void **state)
{
	struct fixture *fixture = *state;
	char name[4096];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	free(fixture->window->kinds[1].name);
	fixture->window->kinds[1].name = strdup(name);
	escalate(fixture);
	assert_one_line(fixture->errors,
			"#4711 xxxxxxxxx...xxxxxxxxxxxxxxxxxxxx 312 ms, 15x usual; ");
}

static void suppression_is_told_once_and_again_when_it_begins_again(void **state)
{
	struct fixture *fixture = *state;
	char limit[sizeof(fixture->errors->text)];
	const char *text;

	fixture->escalation.suppressed = true;
	for (int i = 0; i < 3; i++)
		escalate(fixture);
	assert_one_line(fixture->errors, "more than 100 escalations in 60 s: ");
	snprintf(limit, sizeof(limit), "%s", stderr_text(fixture->errors));
	fixture->escalation.suppressed = false;
	escalate(fixture);
	fixture->escalation.suppressed = true;
	escalate(fixture);
	escalate(fixture);
	text = stderr_text(fixture->errors) + strlen(limit);
	assert_int_equal(strncmp(text, "#4711 ", 6), 0);
	assert_string_equal(strchr(text, '\n') + 1, limit);
}

static void a_step_that_was_asked_for_in_vain_is_told(void **state)
{
	struct fixture *fixture = *state;
	const char *line;

	fixture->escalation.suppressed = true;
	fixture->escalation.fired = FIRED(MANUAL) | FIRED(EFFICIENCY_LOW);
	escalate(fixture);
	escalate(fixture);
	line = strstr(stderr_text(fixture->errors), "step 4711, escalated by hand, ");
	assert_non_null(line);
	assert_non_null(strstr(line + 1, "step 4711, escalated by hand, "));
}

static void an_escalation_of_no_step_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct classifier *classifier = make_classifier();

	assert_int_equal(fixture->sink->finish(fixture->sink, fixture->window, classifier), 0);
	assert_silent(fixture->errors);
	classifier__request_manual(classifier);
	assert_int_equal(fixture->sink->finish(fixture->sink, fixture->window, classifier), 0);
	assert_one_line(fixture->errors, "by hand: no step ");
	classifier__free(classifier);
}

/*
 * An escalation that repeats one between two suppressed ones does not end the suppression either.
 */
static void what_a_class_did_already_is_not_told_again(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.suppressed = true;
	escalate(fixture);
	fixture->escalation.suppressed = false;
	fixture->escalation.repeated = true;
	escalate(fixture);
	fixture->escalation.suppressed = true;
	fixture->escalation.repeated = false;
	escalate(fixture);
	assert_one_line(fixture->errors, "more than 100 escalations in 60 s: ");
}

static void one_that_is_as_usual_is_not_told(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.as_usual = true;
	escalate(fixture);
	assert_silent(fixture->errors);
}

/* The lines on stderr that begin a message of a hang. */
static int hang_lines(struct fixture *fixture, uint64_t time_ns)
{
	const struct fbt_hang hang = {.tgid = 42, .tid = 43, .kind = 1, .time_ns = time_ns};
	const struct fbt_stop_sender nobody = {.time_ns = 0};
	const char *at;
	int count = 0;

	window__add_hang(fixture->window, &hang, &nobody);
	assert_int_equal(fixture->sink->write_hang(fixture->sink, fixture->window, &hang), 0);
	for (at = stderr_text(fixture->errors); (at = strstr(at, "hang: ")); at++)
		count++;
	return count;
}

/* A window of watch is open for weeks. */
static void of_many_hangs_each_hour_has_some_that_are_told(void **state)
{
	struct fixture *fixture = *state;
	const char *text, *limit = "more than 32 hangs in an hour: ";

	for (int i = 1; i <= HANGS_TOLD_MAX; i++)
		assert_int_equal(hang_lines(fixture, MS), i);
	for (int i = 0; i < HANGS_TOLD_MAX; i++)
		assert_int_equal(hang_lines(fixture, 2 * MS), HANGS_TOLD_MAX);
	text = strstr(stderr_text(fixture->errors), limit);
	assert_non_null(text);
	assert_null(strstr(text + 1, limit));
	assert_int_equal(hang_lines(fixture, 7200 * 1000 * MS), HANGS_TOLD_MAX + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_escalation_is_one_line),
		TEST(a_line_begins_with_the_time_of_day),
		TEST(a_budget_that_was_given_is_told),
		TEST(one_that_took_no_longer_than_usual_is_told_by_its_budget),
		TEST(a_small_category_is_not_told_beside_the_cause),
		TEST(what_the_gpu_waited_for_is_said),
		TEST(gpu_records_that_are_missing_are_said_to_be),
		TEST(quiet_says_nothing),
		TEST(the_process_is_named_if_there_are_several),
		TEST(the_process_is_named_if_other_windows_have_others),
		TEST(other_triggers_stand_after_the_reason),
		TEST(both_names_no_trigger_twice),
		TEST(a_step_that_was_not_judged_is_not_compared),
		TEST(without_syscalls_there_is_only_the_cause),
		TEST(without_calls_the_longest_is_that_of_a_category),
		TEST(where_calls_were_lost_the_longest_may_be_one_of_them),
		TEST(the_longest_call_has_its_own_name),
		TEST(one_call_is_told_once),
		TEST(the_dominant_category_is_told_where_the_evidence_does_not),
		TEST(the_longest_of_an_interval_is_no_longer_than_its_sum),
		TEST(an_incomplete_step_says_why),
		TEST(a_step_that_is_still_open_says_so),
		TEST(a_step_of_a_sampled_function_was_not_open_when_the_window_ended),
		TEST(a_step_whose_thread_exited_says_so),
		TEST(names_from_the_target_are_escaped),
		TEST(a_name_without_end_leaves_room_for_the_rest),
		TEST(suppression_is_told_once_and_again_when_it_begins_again),
		TEST(a_step_that_was_asked_for_in_vain_is_told),
		TEST(an_escalation_of_no_step_is_told),
		TEST(one_that_is_as_usual_is_not_told),
		TEST(what_a_class_did_already_is_not_told_again),
		TEST(of_many_hangs_each_hour_has_some_that_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
