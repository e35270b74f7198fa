/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/clock.h"
#include "option_judging.h"
#include "option_table.h"
#include "options_fixture.h"

/* What a replay with these arguments takes from a recording with these options. */
static const struct options *replay(void **state, const char *const *recorded, const char *option,
				    const char *value)
{
	struct fixture *fixture = *state;
	size_t count = 0;

	accept(state, "--replay", "x.fbt", option, value, NULL);
	while (recorded[count])
		count++;
	assert_int_equal(option_judging_take(&fixture->options, recorded, count), 0);
	return &fixture->options;
}

#define RECORDED(...) ((const char *const[]){__VA_ARGS__, NULL})

static void options_that_judge_are_noted_as_they_were_given(void **state)
{
	const struct options *options =
		accept(state, "-p", "7", "--cv-threshold", "20", "--detail", "all", "--budget-us",
		       "20ms", "--cv-threshold=30", NULL);

	assert_int_equal(options->judging_given.count, 2);
	assert_string_equal(options->judging_given.items[0], "cv-threshold=30");
	assert_string_equal(options->judging_given.items[1], "budget-us=20ms");
}

static void each_of_them_is_taken_by_a_replay(void **state)
{
	const struct options *options = replay(
		state,
		RECORDED("cv-threshold=1", "efficiency-threshold=2", "memory-cliff-threshold=3",
			 "gpu-transfer-threshold=4", "rate-limit=5", "rate-interval=6s",
			 "cv-window=70", "budget-us=8ms", "class-by=n_tokens", "context=9"),
		NULL, NULL);
	const struct classify_options *classify = &options->judging.classify;

	assert_true(classify->thresholds.cv_percent == 1);
	assert_true(classify->thresholds.efficiency_percent == 2);
	assert_true(classify->thresholds.memory_cliff_percent == 3);
	assert_true(classify->thresholds.gpu_transfer_percent == 4);
	assert_int_equal(classify->thresholds.rate_limit, 5);
	assert_int_equal(classify->thresholds.rate_interval_ns, 6 * NS_PER_S);
	assert_int_equal(classify->window_steps, 70);
	assert_int_equal(classify->budget_us, 8000);
	assert_string_equal(classify->class_by, "n_tokens");
	assert_int_equal(options->judging.context, 9);
	assert_non_null(strstr(stderr_text(errors_of(state)),
			       "judged as when it was recorded: --cv-threshold 1, "
			       "--efficiency-threshold 2, "));
}

static void what_the_replay_was_given_has_precedence(void **state)
{
	const struct options *options =
		replay(state, RECORDED("cv-threshold=1", "rate-limit=5"), "--cv-threshold", "40");

	assert_true(options->judging.classify.thresholds.cv_percent == 40);
	assert_int_equal(options->judging.classify.thresholds.rate_limit, 5);
	assert_one_line(errors_of(state), "judged as when it was recorded: --rate-limit 5\n");
}

static void nothing_is_said_where_nothing_is_taken(void **state)
{
	replay(state, RECORDED("cv-threshold=1"), "--cv-threshold", "40");
	assert_silent(errors_of(state));
}

/* A recording may come from anybody. */
static void no_other_option_is_taken(void **state)
{
	const struct options *options = replay(
		state, RECORDED("trace=/etc/passwd", "dir=/", "cv-threshold", "="), NULL, NULL);

	assert_null(options->trace);
	assert_int_equal(options->judging_given.count, 0);
	assert_non_null(strstr(stderr_text(errors_of(state)),
			       "the recording's option '--trace=/etc/passwd' is not valid here"));
}

static void a_value_that_is_not_valid_is_left_out(void **state)
{
	const struct options *options =
		replay(state,
		       RECORDED("cv-threshold=many", "cv-threshold=", "cv-threshold=50%",
				"efficiency-threshold=150", "context=2"),
		       NULL, NULL);

	assert_true(options->judging.classify.thresholds.cv_percent == 15);
	assert_true(options->judging.classify.thresholds.efficiency_percent == 25);
	assert_int_equal(options->judging.context, 2);
	assert_int_equal(options->judging_given.count, 1);
	assert_non_null(strstr(stderr_text(errors_of(state)),
			       "the recording's option '--cv-threshold=many' is not valid here"));
}

static void those_without_a_number_can_be_undone(void **state)
{
	const struct options *options =
		replay(state, RECORDED("budget-us=8ms"), "--budget-us", "0");

	assert_int_equal(options->judging.classify.budget_us, 0);
	assert_silent(errors_of(state));
	options = replay(state, RECORDED("class-by=n_tokens"), "--class-by", "");
	assert_null(options->judging.classify.class_by);
	assert_silent(errors_of(state));
}

/* Whoever adds such an option has to add its name. */
static void every_option_of_the_stages_that_judge_is_kept(void **state)
{
	const size_t begin = offsetof(struct options, judging),
		     end = begin + offsetof(struct pipeline_options, merge);
	struct options options = {0};
	size_t rows = 0;

	(void)state;
	for (size_t i = 0; i < option_table_count; i++) {
		const struct option_row *row = &option_table[i];

		if (!row->name || !row->size || row->field < begin || row->field >= end)
			continue;
		rows++;
		assert_int_equal(option_judging_note(&options, row->name, "1"), 0);
		if (options.judging_given.count != rows)
			fail_msg("--%s is not kept", row->name);
	}
	assert_int_equal(rows, 10);
	options_clear(&options);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(options_that_judge_are_noted_as_they_were_given),
		TEST(each_of_them_is_taken_by_a_replay),
		TEST(what_the_replay_was_given_has_precedence),
		TEST(nothing_is_said_where_nothing_is_taken),
		TEST(no_other_option_is_taken),
		TEST(a_value_that_is_not_valid_is_left_out),
		TEST(those_without_a_number_can_be_undone),
		TEST(every_option_of_the_stages_that_judge_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
