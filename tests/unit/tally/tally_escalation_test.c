/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include "escalation_fixture.h"
#include "tally/tally.h"

#define START_NS UINT64_C(1000000000000)
#define MS	 UINT64_C(1000000)

struct fixture {
	struct window *window;
	struct escalation_tally tally;
	uint64_t steps;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	fixture->window->record.start_ns = START_NS;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	escalation_tally_clear(&fixture->tally);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, const struct escalation *escalation)
{
	struct step step = {.number = ++fixture->steps, .complete = true};

	step.record.start_ns = START_NS + step.number * MS;
	step.record.thread_ns = 312 * MS;
	step.record.kind = 1;
	step.record.tgid = 42;
	step.record.tid = 43;
	assert_int_equal(escalation_tally_add(&fixture->tally, fixture->window, &step, escalation),
			 0);
}

/* Adds a step whose cause took extra_ns more than usual. */
static void add_cause(struct fixture *fixture, enum cause_kind kind, uint64_t extra_ns)
{
	struct escalation escalation = make_escalation();

	escalation.cause.kind = kind;
	escalation.cause.usual_ns = MS;
	escalation.cause.time_ns = MS + extra_ns;
	add(fixture, &escalation);
}

static void extra_time_is_what_is_over_the_usual(void **state)
{
	struct fixture *fixture = *state;
	const struct cause_tally *cause = &fixture->tally.causes[CAUSE_FILE_IO];

	add_cause(fixture, CAUSE_FILE_IO, 3 * MS);
	add_cause(fixture, CAUSE_FILE_IO, 5 * MS);
	add_cause(fixture, CAUSE_FILE_IO, 4 * MS);
	assert_int_equal(cause->steps, 3);
	assert_int_equal(cause->usual_known, 3);
	assert_int_equal(cause->extra_ns, 12 * MS);
	assert_int_equal(cause->worst_step, 2);
	assert_int_equal(cause->worst_extra_ns, 5 * MS);
	assert_int_equal(cause->worst_total_ns, 312 * MS);
	assert_true(strlen(cause->worst_evidence) > 0);
}

static void time_under_the_usual_is_no_extra(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	escalation.cause.time_ns = 1;
	escalation.cause.usual_ns = 2;
	add(fixture, &escalation);
	assert_int_equal(fixture->tally.causes[CAUSE_LOCK_CONTENTION].extra_ns, 0);
	assert_int_equal(fixture->tally.causes[CAUSE_LOCK_CONTENTION].worst_step, 1);
}

static void extra_time_saturates(void **state)
{
	struct fixture *fixture = *state;

	add_cause(fixture, CAUSE_FILE_IO, UINT64_MAX - MS);
	add_cause(fixture, CAUSE_FILE_IO, UINT64_MAX - MS);
	assert_true(fixture->tally.causes[CAUSE_FILE_IO].extra_ns == UINT64_MAX);
}

static void without_a_usual_time_there_is_no_extra_time(void **state)
{
	struct fixture *fixture = *state;
	const struct cause_tally *cause = &fixture->tally.causes[CAUSE_LOCK_CONTENTION];
	struct escalation escalation = make_escalation();

	escalation.cause.usual_known = false;
	escalation.cause.usual_ns = 0;
	add(fixture, &escalation);
	assert_int_equal(cause->steps, 1);
	assert_int_equal(cause->usual_known, 0);
	assert_int_equal(cause->extra_ns, 0);
	assert_int_equal(cause->worst_step, 1);
}

static void those_that_are_not_shown_are_counted_and_listed_as_such(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	escalation.suppressed = true;
	add(fixture, &escalation);
	escalation.suppressed = false;
	escalation.repeated = true;
	add(fixture, &escalation);
	escalation.repeated = false;
	add(fixture, &escalation);
	assert_int_equal(fixture->tally.causes[CAUSE_LOCK_CONTENTION].steps, 3);
	assert_true(fixture->tally.causes[CAUSE_LOCK_CONTENTION].extra_ns > 870 * MS);
	assert_string_equal(escalation_tally_entry(&fixture->tally, 0)->not_shown, "rate_limit");
	assert_string_equal(escalation_tally_entry(&fixture->tally, 1)->not_shown, "repeated");
	assert_null(escalation_tally_entry(&fixture->tally, 2)->not_shown);
}

static void causes_are_sorted_by_their_extra_time(void **state)
{
	struct fixture *fixture = *state;
	enum cause_kind order[CAUSE_COUNT];

	assert_int_equal(escalation_tally_sort(&fixture->tally, order), 0);
	add_cause(fixture, CAUSE_DRIVER_CALLS, 2 * MS);
	add_cause(fixture, CAUSE_COMPUTE, 9 * MS);
	add_cause(fixture, CAUSE_SLEEP, 1 * MS);
	add_cause(fixture, CAUSE_SLEEP, 1 * MS);
	assert_int_equal(escalation_tally_sort(&fixture->tally, order), 3);
	assert_int_equal(order[0], CAUSE_COMPUTE);
	/* Of equal causes, the one with more steps comes first. */
	assert_int_equal(order[1], CAUSE_SLEEP);
	assert_int_equal(order[2], CAUSE_DRIVER_CALLS);
}

static void an_entry_says_which_step_it_was(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();
	const struct escalation_entry *entry;

	add(fixture, &escalation);
	entry = escalation_tally_entry(&fixture->tally, 0);
	assert_non_null(entry);
	assert_int_equal(entry->number, 3);
	assert_int_equal(entry->step, 1);
	assert_int_equal(entry->start_ns, MS);
	assert_int_equal(entry->total_ns, 312 * MS);
	assert_int_equal(entry->budget_ns, 21000999);
	assert_int_equal(entry->tid, 43);
	assert_int_equal(entry->reason, ESCALATION_EFFICIENCY_LOW);
	assert_int_equal(entry->cause, CAUSE_LOCK_CONTENTION);
	assert_true(entry->complete);
	assert_null(escalation_tally_entry(&fixture->tally, 1));
}

static void the_last_ones_are_kept_in_their_order(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	for (int i = 0; i < ESCALATIONS_LISTED + 3; i++)
		add(fixture, &escalation);
	assert_int_equal(escalation_tally_entry(&fixture->tally, 0)->step, 4);
	assert_int_equal(escalation_tally_entry(&fixture->tally, ESCALATIONS_LISTED - 1)->step,
			 ESCALATIONS_LISTED + 3);
	assert_null(escalation_tally_entry(&fixture->tally, ESCALATIONS_LISTED));
}

static void a_cause_that_cannot_be_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	enum cause_kind order[CAUSE_COUNT];
	struct escalation escalation = make_escalation();

	escalation.cause.kind = CAUSE_COUNT;
	add(fixture, &escalation);
	assert_int_equal(escalation_tally_sort(&fixture->tally, order), 0);
}

/* Where it is known for whom the step waited, the others do not matter. */
static void a_holder_is_for_whom_the_step_waited(void **state)
{
	struct fixture *fixture = *state;
	const struct cause_tally *cause = &fixture->tally.causes[CAUSE_LOCK_CONTENTION];
	struct escalation escalation = make_escalation();

	escalation.cause.others[0] = (struct fbt_look_thread){
		.threads = 3, .doing = FBT_DOING_UNKNOWN, .header.flags = FBT_LOOK_GROUP};
	escalation.cause.other_count = 1;
	add(fixture, &escalation);
	assert_string_equal(cause->worst_others, "3 others");
	assert_false(cause->worst_is_known);
	escalation.cause.time_ns += MS;
	escalation.cause.holders[0] = (struct fbt_look_thread){.owner = 8, .depth = 1};
	escalation.cause.holder_count = 1;
	add(fixture, &escalation);
	assert_string_equal(cause->worst_others, "3 others");
	assert_true(cause->worst_is_known);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(extra_time_is_what_is_over_the_usual),
		TEST(time_under_the_usual_is_no_extra),
		TEST(extra_time_saturates),
		TEST(without_a_usual_time_there_is_no_extra_time),
		TEST(those_that_are_not_shown_are_counted_and_listed_as_such),
		TEST(causes_are_sorted_by_their_extra_time),
		TEST(an_entry_says_which_step_it_was),
		TEST(the_last_ones_are_kept_in_their_order),
		TEST(a_cause_that_cannot_be_is_left_out),
		TEST(a_holder_is_for_whom_the_step_waited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
