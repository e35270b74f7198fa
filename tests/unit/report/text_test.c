/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

static int setup(void **state)
{
	*state = new_fixture(REPORT_TEXT);
	return 0;
}

static int teardown(void **state)
{
	free_fixture(*state);
	return 0;
}

/* Pushes a step as the pipeline does: 20 ms of work, and futex_ns in one call. */
static void push_step(struct fixture *fixture, uint64_t futex_ns)
{
	const struct escalation *escalation;
	struct step step = make_step(fixture, 20 * MS + futex_ns);
	struct sink *sink = fixture->sink;

	step.record.header.flags = FBT_STEP_SCHED_UNKNOWN;
	step.record.sums[FBT_FUTEX] = (struct fbt_sum){futex_ns, 1, 0, futex_ns};
	assert_int_equal(
		classifier__judge(fixture->classifier, fixture->window, &step, &escalation), 0);
	write_step(fixture, &step);
	if (escalation)
		assert_int_equal(sink->write_escalation(sink, fixture->window, &step, escalation),
				 0);
}

static void push_steps(struct fixture *fixture, int count, uint64_t futex_ns)
{
	while (count--)
		push_step(fixture, futex_ns);
}

/* As push_step(), but with a given verdict and the classifier's counts. */
static void push_escalation(struct fixture *fixture, const struct escalation *escalation)
{
	struct step step = make_step(fixture, 20 * MS);
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_escalation(sink, fixture->window, &step, escalation), 0);
}

/* Expects the end of the part on escalations, which is above the first table. */
static void assert_ends(const char *text, const char *end)
{
	const char *table = strstr(text, "\n       steps ");
	size_t size = strlen(end);

	if (!table)
		table = strstr(text, "\n   intervals ");
	assert_non_null(table);
	do
		table--;
	while (*table != '\n');
	/* A blank line separates the two. */
	if (table - text < (long)size || strncmp(table - size, end, size))
		fail_msg("\"%s\" is not the end of the first part of:\n%s", end, text);
}

static void without_steps_nothing_is_said(void **state)
{
	assert_has_not(finish(*state), "Escalations");
}

static void before_a_class_is_known_nothing_is_judged(void **state)
{
	push_steps(*state, 10, MS);
	assert_has(finish(*state), "\n\nEscalations     no step was judged");
}

static void a_healthy_run_is_one_line(void **state)
{
	push_steps(*state, 1210, MS);
	assert_says(finish(*state), "\n\nEscalations     no step was escalated: 1,200 judged, 10 "
				    "not (fewer than 10 similar steps before)\n\nllama_decode\n");
}

static void push_left(struct fixture *fixture, int count)
{
	const struct escalation *escalation;

	while (count--) {
		struct step step = make_step(fixture, MS);

		step.record.end = FBT_END_UNWOUND;
		assert_int_equal(
			classifier__judge(fixture->classifier, fixture->window, &step, &escalation),
			0);
		write_step(fixture, &step);
	}
}

static void steps_that_an_exception_left_are_not_those_of_an_unknown_class(void **state)
{
	push_steps(*state, 30, MS);
	push_left(*state, 190);
	assert_says(finish(*state), "no step was escalated: 20 judged, 200 not (10: fewer than 10 "
				    "similar steps before; 190: left by an exception or longjmp)");
}

static void where_all_were_left_by_an_exception_that_is_said(void **state)
{
	push_left(*state, 20);
	assert_says(finish(*state), "no step was judged (left by an exception or longjmp)\n");
}

static void push_intervals(struct fixture *fixture, int count)
{
	const struct escalation *escalation;
	struct step step = make_step(fixture, MS);
	struct sink *sink = fixture->sink;

	step.record.kind = 0;
	while (count--) {
		assert_int_equal(
			classifier__judge(fixture->classifier, fixture->window, &step, &escalation),
			0);
		write_step(fixture, &step);
		if (escalation)
			assert_int_equal(
				sink->write_escalation(sink, fixture->window, &step, escalation),
				0);
	}
}

static void intervals_are_not_judged(void **state)
{
	push_intervals(*state, 20);
	assert_has(finish(*state), "\n\nEscalations     intervals are not judged");
}

static void an_interval_can_be_asked_for(void **state)
{
	struct fixture *fixture = *state;

	classifier__request_manual(fixture->classifier);
	push_intervals(fixture, 20);
	assert_ends(finish(fixture), "\n\nEscalations: 1 of 20 steps\n"
				     "  reasons       manual 1\n"
				     "  not judged    20 (intervals never are)\n");
}

static void escalations_are_counted_by_reason(void **state)
{
	push_steps(*state, 30, MS);
	push_steps(*state, 2, 300 * MS);
	assert_has(finish(*state), "\n\nEscalations: 2 of 32 steps\n"
				   "  reasons       efficiency_low 2\n"
				   "  not judged    10 (fewer than 10 similar steps before)\n\n");
}

static void the_most_expensive_cause_comes_first_with_what_to_do(void **state)
{
	struct fixture *fixture = *state;
	char advice[16];

	push_steps(fixture, 30, MS);
	push_step(fixture, 200 * MS);
	push_step(fixture, 301 * MS);
	finish(fixture);
	assert_has(fixture->text,
		   "  most expensive causes       steps  extra time  worst step      took\n"
		   "  1  lock contention              2      499 ms         #32    321 ms\n"
		   "     evidence   futex 301 ms (usually 1.00 ms)");
	snprintf(advice, sizeof(advice), "%s", cause_advice(CAUSE_LOCK_CONTENTION));
	assert_has(strstr(fixture->text, "\n     advice     "), advice);
	assert_has(strstr(fixture->text, "\n     advice     "), "\n\nllama_decode\n");
}

static void three_causes_are_shown_the_most_expensive_first(void **state)
{
	static const enum cause_kind kinds[] = {CAUSE_SLEEP, CAUSE_COMPUTE, CAUSE_FILE_IO,
						CAUSE_DRIVER_CALLS};
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	push_steps(fixture, 30, MS);
	push_step(fixture, 90 * MS);
	for (int i = 0; i < 4; i++) {
		escalation.cause.kind = kinds[i];
		escalation.cause.time_ns = (uint64_t)(i + 1) * 100 * MS;
		escalation.cause.usual_ns = 0;
		push_escalation(fixture, &escalation);
	}
	finish(fixture);
	assert_has(fixture->text, "\n  1  driver calls                 1      400 ms");
	assert_has(fixture->text, "\n  2  file io                      1      300 ms");
	assert_has(fixture->text, "\n  3  compute                      1      200 ms");
	assert_has_not(fixture->text, "\n  4  ");
	assert_ends(fixture->text, "\n  and 2 more (--report json has all)\n");
}

static void time_that_is_estimated_is_marked(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	push_steps(fixture, 30, MS);
	push_step(fixture, 90 * MS);
	escalation.cause = (struct cause){.kind = CAUSE_PAGE_FAULTS,
					  .usual_known = true,
					  .estimated = true,
					  .time_ns = 400 * MS};
	push_escalation(fixture, &escalation);
	finish(fixture);
	assert_has(fixture->text, "\n  1  page faults                  1     ~400 ms");
	assert_has(fixture->text, "\n  2  lock contention              1     89.0 ms");
}

static void a_cause_that_cost_no_time_is_not_expensive(void **state)
{
	struct fixture *fixture = *state;

	classifier__request_manual(fixture->classifier);
	push_step(fixture, 90 * MS);
	assert_ends(finish(fixture), "\n\nEscalations: 1 of 1 steps\n"
				     "  reasons       manual 1\n"
				     "  not judged    1 (fewer than 10 similar steps before)\n");
}

static void what_was_not_shown_is_counted(void **state)
{
	struct fixture *fixture = *state;

	push_steps(fixture, 60, MS);
	/* The steps are so far apart that they stay outliers. */
	for (int i = 0; i < 103; i++) {
		push_step(fixture, 300 * MS);
		push_steps(fixture, 9, MS);
	}
	assert_says(finish(fixture), "\n  not shown     3 above the limit of 100 in 60 s ");
}

static void evidence_is_escaped_and_wrapped(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();
	struct fbt_file file = {.id = 1, .fd = 3, .mode = 0100644};
	char path[400] = "/models/\033[2J\xff";
	size_t width = 0;

	memset(path + strlen(path), 'x', sizeof(path) - strlen(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(window__add_file(fixture->window, &file, path), 0);
	push_steps(fixture, 30, MS);
	push_step(fixture, 90 * MS);
	escalation.cause.kind = CAUSE_FILE_IO;
	escalation.cause.time_ns = 1000 * MS;
	escalation.cause.nr = 0;
	escalation.cause.file = 1;
	push_escalation(fixture, &escalation);
	for (const char *at = finish(fixture); *at; at++) {
		width = *at == '\n' ? 0 : width + 1;
		if (width > 100)
			fail_msg("too wide:\n%s", fixture->text);
	}
	assert_has_not(fixture->text, "\033");
	assert_has_not(fixture->text, "\xff");
	assert_has(fixture->text, "/models/\\x1b[2J\\xff");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_steps_nothing_is_said),
		TEST(before_a_class_is_known_nothing_is_judged),
		TEST(a_healthy_run_is_one_line),
		TEST(steps_that_an_exception_left_are_not_those_of_an_unknown_class),
		TEST(where_all_were_left_by_an_exception_that_is_said),
		TEST(intervals_are_not_judged),
		TEST(an_interval_can_be_asked_for),
		TEST(escalations_are_counted_by_reason),
		TEST(the_most_expensive_cause_comes_first_with_what_to_do),
		TEST(three_causes_are_shown_the_most_expensive_first),
		TEST(time_that_is_estimated_is_marked),
		TEST(a_cause_that_cost_no_time_is_not_expensive),
		TEST(what_was_not_shown_is_counted),
		TEST(evidence_is_escaped_and_wrapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
