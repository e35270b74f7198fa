/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream/step_sums.h"

enum { MAX = 40 };

struct record {
	struct step_sum of;
	uint32_t value;
};

static int setup(void **state)
{
	*state = step_sums__new(sizeof(struct record), MAX);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	step_sums__free(*state);
	return 0;
}

static struct record *get(struct step_sums *sums, uint32_t tid, uint64_t start_ns)
{
	const struct step_sum key = {7, tid, start_ns};
	struct record *record = step_sums__get(sums, &key);

	assert_non_null(record);
	return record;
}

static void a_step_has_one_record_that_begins_empty(void **state)
{
	struct step_sums *sums = *state;

	assert_null(step_sums__find(sums, 8, 100));
	assert_int_equal(get(sums, 8, 100)->value, 0);
	get(sums, 8, 100)->value = 5;
	assert_int_equal(get(sums, 8, 200)->value, 0);
	assert_int_equal(get(sums, 9, 100)->value, 0);
	assert_int_equal(get(sums, 8, 100)->value, 5);
	assert_int_equal(get(sums, 8, 100)->of.tgid, 7);
}

static void one_that_was_dropped_leaves_the_others(void **state)
{
	struct step_sums *sums = *state;

	for (uint32_t i = 0; i < 30; i++)
		get(sums, 8, i)->value = i;
	for (uint32_t i = 0; i < 30; i += 2)
		step_sums__drop(sums, step_sums__find(sums, 8, i));
	for (uint32_t i = 0; i < 30; i++) {
		struct record *record = step_sums__find(sums, 8, i);

		assert_true(!record == !(i % 2));
		if (record)
			assert_int_equal(record->value, i);
	}
	assert_int_equal(get(sums, 8, 0)->value, 0);
}

static void the_oldest_gives_way(void **state)
{
	struct step_sums *sums = *state;

	for (uint32_t i = 0; i < MAX + 3; i++)
		get(sums, 8, i)->value = i;
	for (uint32_t i = 0; i < MAX + 3; i++)
		assert_true(!step_sums__find(sums, 8, i) == (i < 3));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_step_has_one_record_that_begins_empty),
		TEST(one_that_was_dropped_leaves_the_others),
		TEST(the_oldest_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
