/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Classes by an argument of the step: --class-by, and tokens of Python functions. */
#include "classify_fixture.h"

static bool push_argument(struct fixture *fixture, uint32_t mask, int64_t value, uint64_t work_ns,
			  uint64_t lock_ns)
{
	struct step step = step_of(work_ns, "futex", lock_ns);

	step.record.arg_mask = mask;
	step.record.args[0] = 77;
	step.record.args[1] = value;
	return push(fixture, step);
}

static void classes_go_by_an_argument_where_one_is_named(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.class_by = "n_seqs";
	begin(fixture);
	for (int i = 0; i < 10; i++) {
		assert_false(push_argument(fixture, 3, 4 + i % 4, (20 + 20 * i) * MS, 0));
		assert_false(push_argument(fixture, 3, -i, 20 * MS, 0));
	}
	/* Whatever the work. */
	assert_true(push_argument(fixture, 3, 7, 50 * MS, 300 * MS));
	assert_true(push_argument(fixture, 2, 4, 5 * MS, 300 * MS));
	assert_false(push_argument(fixture, 3, 8, 50 * MS, 300 * MS));
	assert_false(push_argument(fixture, 3, 3, 50 * MS, 300 * MS));
	/* 0 and below are one class. */
	assert_true(push_argument(fixture, 3, 0, 50 * MS, 300 * MS));
	assert_true(push_argument(fixture, 3, INT64_MIN, 50 * MS, 300 * MS));
}

/* Prefills that always wait, beside decodes that never do. */
static void an_anomaly_of_an_argument_never_becomes_usual(void **state)
{
	struct fixture *fixture = *state;
	uint64_t named = 0;

	fixture->options.class_by = "n_seqs";
	fixture->options.thresholds.rate_limit = UINT32_MAX;
	begin(fixture);
	for (int i = 1; i <= 2000; i++) {
		if (i % 20 == 0)
			named += push_argument(fixture, 3, 512, 100 * MS, 900 * MS);
		else
			assert_false(push_argument(fixture, 3, 1, 30 * MS, 100 * US));
	}
	/* The first ten are not judged. */
	assert_int_equal(named, 90);
	begin(fixture);
	for (int i = 1; i <= 2000; i++)
		assert_false(i % 20 ? push_argument(fixture, 3, 1, 30 * MS, 100 * US)
				    : push_argument(fixture, 3, 512, 100 * MS, 200 * MS));
}

/* A prefill whose own work is hardly more than that of a decode step waits for its tokens. */
static void waits_that_grow_with_the_argument_are_usual(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.class_by = "n_seqs";
	begin(fixture);
	for (int i = 1; i <= 3000; i++)
		assert_false(i % 100 ? push_argument(fixture, 3, 8, MS, 20 * MS)
				     : push_argument(fixture, 3, 8192, 2 * MS, 800 * MS));
}

static void steps_without_the_argument_go_by_work(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.class_by = "n_seqs";
	begin(fixture);
	for (int i = 0; i < 10; i++)
		assert_false(push_argument(fixture, 1, 5, 20 * MS, 0));
	assert_false(push_argument(fixture, 3, 5, 20 * MS, 300 * MS));
	assert_true(push_argument(fixture, 1, 5, 50 * MS, 300 * MS));
	assert_true(fixture->last.nearest);
	assert_true(push_argument(fixture, 1, 900, 20 * MS, 300 * MS));
	/* An argument that is 25 is not a step of 20 ms of work: bucket 25 each. */
	assert_false(push_argument(fixture, 3, (1 << 24) + 1, 20 * MS, 300 * MS));
}

/* Kind 3 is a Python function with the arguments given. */
static void add_python(struct fixture *fixture, const char *first, const char *second)
{
	const char *args[] = {first, second};
	struct fbt_kind kind = {
		.header.flags = FBT_KIND_PYTHON, .kind = 3, .arg_count = second ? 2 : 1};

	assert_int_equal(window__add_kind(fixture->window, &kind, "Runner.step", "/run.py", args),
			 0);
}

static bool push_python(struct fixture *fixture, uint32_t mask, int64_t tokens, uint64_t work_ns,
			uint64_t lock_ns)
{
	struct step step = step_of(work_ns, "futex", lock_ns);

	step.record.kind = 3;
	step.record.arg_mask = mask;
	step.record.args[1] = tokens;
	return push(fixture, step);
}

static void steps_of_a_python_function_have_classes_by_tokens(void **state)
{
	struct fixture *fixture = *state;

	add_python(fixture, "n_requests", "n_tokens");
	for (int i = 0; i < 20; i++)
		assert_false(push_python(fixture, 3, 4 + i % 4, (20 + 20 * i) * MS, 0));
	assert_true(push_python(fixture, 3, 7, 50 * MS, 300 * MS));
	assert_true(classifier__class(fixture->classifier)->by_argument);
	assert_int_equal(classifier__class(fixture->classifier)->bits, 3);
	assert_string_equal(classifier__class_by(fixture->classifier, fixture->window, 3),
			    "n_tokens");
	/* Tokens of a size that has no class yet: nothing to hold the step against. */
	assert_false(push_python(fixture, 3, 8, 50 * MS, 300 * MS));
	/* Those whose tokens could not be read go by work. */
	assert_false(push_python(fixture, 1, 0, 20 * MS, 0));
	assert_false(classifier__class(fixture->classifier)->by_argument);
}

static void steps_that_wait_for_the_batch_before_have_classes_by_its_tokens(void **state)
{
	struct fixture *fixture = *state;

	add_python(fixture, "n_tokens", "n_waited");
	for (int i = 0; i < 20; i++)
		assert_false(push_python(fixture, 3, 4, 20 * MS, 0));
	assert_string_equal(classifier__class_by(fixture->classifier, fixture->window, 3),
			    "n_waited");
	/* It launches little, and waits for much that was launched before. */
	assert_false(push_python(fixture, 3, 500, 20 * MS, 300 * MS));
	assert_int_equal(classifier__class(fixture->classifier)->bits, 9);
	/* Where nothing is waited for the work tells. */
	assert_false(push_python(fixture, 1, 0, 20 * MS, 0));
	assert_false(classifier__class(fixture->classifier)->by_argument);
}

static void steps_of_a_python_function_without_tokens_have_classes_by_work(void **state)
{
	struct fixture *fixture = *state;

	add_python(fixture, "n_requests", NULL);
	for (int i = 0; i < 20; i++)
		assert_false(push_python(fixture, 3, 4, 20 * MS, 0));
	assert_true(push_python(fixture, 3, 900, 20 * MS, 300 * MS));
	assert_false(classifier__class(fixture->classifier)->by_argument);
	assert_null(classifier__class_by(fixture->classifier, fixture->window, 3));
}

static void native_functions_with_tokens_have_classes_by_work(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_argument(fixture, 3, 4, 20 * MS, 0));
	assert_false(classifier__class(fixture->classifier)->by_argument);
	assert_null(classifier__class_by(fixture->classifier, fixture->window, 1));
}

static void class_by_stands_above_tokens(void **state)
{
	struct fixture *fixture = *state;

	add_python(fixture, "n_requests", "n_tokens");
	fixture->options.class_by = "n_requests";
	begin(fixture);
	assert_false(push_python(fixture, 3, 900, 20 * MS, 0));
	assert_true(classifier__class(fixture->classifier)->by_argument);
	assert_int_equal(classifier__class(fixture->classifier)->bits, 0);
}

static void an_argument_of_no_function_leaves_classes_by_work(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.class_by = "no_such";
	begin(fixture);
	push_steady(fixture, 20);
	assert_true(push_argument(fixture, 3, 5, 20 * MS, 300 * MS));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(classes_go_by_an_argument_where_one_is_named),
		TEST(an_anomaly_of_an_argument_never_becomes_usual),
		TEST(waits_that_grow_with_the_argument_are_usual),
		TEST(steps_without_the_argument_go_by_work),
		TEST(steps_of_a_python_function_have_classes_by_tokens),
		TEST(steps_that_wait_for_the_batch_before_have_classes_by_its_tokens),
		TEST(steps_of_a_python_function_without_tokens_have_classes_by_work),
		TEST(native_functions_with_tokens_have_classes_by_work),
		TEST(class_by_stands_above_tokens),
		TEST(an_argument_of_no_function_leaves_classes_by_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
