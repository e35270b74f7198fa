/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "html/points.h"

#define MS UINT64_C(1000000)

struct fixture {
	struct window *window;
	struct points points;
	uint64_t number;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	points_clear(&fixture->points);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, uint32_t kind, uint64_t ns)
{
	struct step step = {
		.number = ++fixture->number,
		.record = {.kind = kind,
			   .start_ns = fixture->number * MS,
			   .end_ns = fixture->number * MS + ns,
			   .thread_ns = ns},
	};

	assert_int_equal(points_add(&fixture->points, fixture->window, &step), 0);
}

static void escalate(struct fixture *fixture)
{
	struct escalation escalation = {.usual_ns = MS, .cause.kind = CAUSE_LOCK_CONTENTION};

	assert_int_equal(points_escalate(&fixture->points, fixture->window, &escalation), 0);
}

static bool is_kept(const struct fixture *fixture, uint64_t number)
{
	const struct points *points = &fixture->points;

	for (size_t i = 0; i < points->kept.count; i++)
		if (points->kept.items[i].number == number)
			return true;
	for (size_t i = 0; i < points->wrong.count; i++)
		if (points->wrong.items[i].number == number)
			return true;
	return false;
}

static void all_steps_are_kept_while_there_is_room(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < POINTS_MAX; i++)
		add(fixture, 1, MS);
	assert_int_equal(points_end(&fixture->points), 0);
	assert_int_equal(fixture->points.kept.count, POINTS_MAX);
	assert_int_equal(fixture->points.stride, 1);
}

static void escalated_ones_are_kept_with_their_cause(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 1, MS);
	add(fixture, 1, 9 * MS);
	escalate(fixture);
	add(fixture, 1, MS);
	assert_int_equal(points_end(&fixture->points), 0);
	assert_int_equal(fixture->points.kept.count, 2);
	assert_int_equal(fixture->points.wrong.count, 1);
	assert_int_equal(fixture->points.wrong.items[0].number, 2);
	assert_int_equal(fixture->points.wrong.items[0].cause, CAUSE_LOCK_CONTENTION + 1);
	assert_int_equal(fixture->points.wrong.items[0].usual_ns, MS);
	assert_non_null(fixture->points.wrong.items[0].words);
}

/*
 * 400,000 steps of two kinds. Every 1,000th is long, every 2,500th is escalated. No long one may
 * go, though none is longer than its neighbours of the other kind.
 */
static void outliers_survive_thinning(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 400000; i++) {
		if (i % 2)
			add(fixture, 2, 500 * MS);
		else
			add(fixture, 1, i % 1000 ? MS + i % 7 : 40 * MS);
		if (i % 2500 == 1)
			escalate(fixture);
	}
	assert_int_equal(points_end(&fixture->points), 0);
	assert_int_equal(fixture->points.seen, 400000);
	assert_true(fixture->points.kept.count <= POINTS_MAX + FBT_KIND_COUNT);
	assert_true(fixture->points.kept.count > POINTS_MAX / 2 - FBT_KIND_COUNT);
	for (uint64_t i = 0; i < 400000; i += 1000)
		assert_true(is_kept(fixture, i + 1));
	for (uint64_t i = 1; i < 400000; i += 2500)
		assert_true(is_kept(fixture, i + 1));
}

/* Memory stays bounded when all steps are wrong. */
static void many_escalated_ones_are_thinned_too(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 4 * POINTS_MAX; i++) {
		add(fixture, 1, MS);
		escalate(fixture);
	}
	assert_int_equal(points_end(&fixture->points), 0);
	assert_int_equal(fixture->points.wrong.count, POINTS_WRONG_MAX);
	assert_true(fixture->points.kept.count <= POINTS_MAX + 1);
	assert_true(fixture->points.wordy <= POINTS_WORDS_MAX);
}

static void the_argument_is_the_first_that_any_step_has(void **state)
{
	struct fixture *fixture = *state;
	struct step step = {.record = {.kind = 1, .end_ns = MS, .thread_ns = MS}};

	assert_int_equal(points_arg(&fixture->points, 1), 0);
	step.record.arg_mask = 6;
	assert_int_equal(points_add(&fixture->points, fixture->window, &step), 0);
	assert_int_equal(points_arg(&fixture->points, 1), 1);
	step.record.kind = 2;
	step.record.arg_mask = 1;
	assert_int_equal(points_add(&fixture->points, fixture->window, &step), 0);
	assert_int_equal(points_arg(&fixture->points, 1), 1);
	assert_int_equal(points_arg(&fixture->points, 2), 0);
}

/* As the function of vLLM's engine that launches one batch and waits for another. */
static void the_argument_of_the_classes_comes_first(void **state)
{
	struct fixture *fixture = *state;
	const char *args[] = {"n_tokens", "n_waited"};
	struct fbt_kind kind = {.header.flags = FBT_KIND_PYTHON, .kind = 1, .arg_count = 2};
	struct classify_options options = classify_default_options();
	struct classifier *by_default = classifier__new(&options), *by_name;
	struct step step = {.record = {.kind = 1, .arg_mask = 1, .thread_ns = MS}};

	options.class_by = "n_tokens";
	by_name = classifier__new(&options);
	assert_true(by_default && by_name);
	assert_int_equal(window__add_kind(fixture->window, &kind, "step", "", args), 0);
	assert_int_equal(points_add(&fixture->points, fixture->window, &step), 0);
	points_choose_args(&fixture->points, fixture->window, by_default);
	assert_int_equal(points_arg(&fixture->points, 1), 0);
	step.record.arg_mask = 3;
	assert_int_equal(points_add(&fixture->points, fixture->window, &step), 0);
	points_choose_args(&fixture->points, fixture->window, by_default);
	assert_int_equal(points_arg(&fixture->points, 1), 1);
	points_choose_args(&fixture->points, fixture->window, by_name);
	assert_int_equal(points_arg(&fixture->points, 1), 0);
	classifier__free(by_default);
	classifier__free(by_name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_steps_are_kept_while_there_is_room, setup,
						teardown),
		cmocka_unit_test_setup_teardown(escalated_ones_are_kept_with_their_cause, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_argument_is_the_first_that_any_step_has, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_argument_of_the_classes_comes_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(outliers_survive_thinning, setup, teardown),
		cmocka_unit_test_setup_teardown(many_escalated_ones_are_thinned_too, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
