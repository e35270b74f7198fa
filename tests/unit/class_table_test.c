/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judged_fixture.h"

#include "class_table.h"

static struct class_table *new_table(uint32_t window_steps)
{
	struct class_table *table = class_table__new(window_steps);

	assert_non_null(table);
	return table;
}

/* Adds a class that is known by the work of its one step. */
static void add(struct class_table *table, uint64_t key)
{
	struct cause_times times = {.ns = {[CAUSE_COMPUTE] = key + 1}};
	struct class_history *history = class_table__add(table, key);

	assert_non_null(history);
	assert_int_equal(class_history__count(history), 0);
	assert_int_equal(class_history__add(history, &times), 0);
}

static bool has(struct class_table *table, uint64_t key)
{
	struct class_history *history = class_table__find(table, key);

	if (!history)
		return false;
	assert_int_equal(class_history__usual_work_ns(history), key + 1);
	return true;
}

static void classes_are_found_by_their_keys(void **state)
{
	struct class_table *table = new_table(64);

	assert_false(has(table, 0));
	for (uint64_t i = 0; i < CLASSES_MAX; i++)
		add(table, i << 32 | i);
	for (uint64_t i = 0; i < CLASSES_MAX; i++)
		assert_true(has(table, i << 32 | i));
	assert_false(has(table, 1));
	assert_false(has(table, UINT64_MAX - 1));
	class_table__free(table);
}

static void the_class_not_asked_for_longest_goes(void **state)
{
	struct class_table *table = new_table(64);

	for (uint64_t i = 0; i < CLASSES_MAX; i++)
		add(table, i);
	assert_true(has(table, 0));
	add(table, CLASSES_MAX);
	assert_false(has(table, 1));
	assert_true(has(table, 0));
	assert_true(has(table, 2));
	add(table, CLASSES_MAX + 1);
	assert_false(has(table, 3));
	assert_true(has(table, CLASSES_MAX) && has(table, CLASSES_MAX + 1));
	class_table__free(table);
}

static uint64_t classes_kept(uint32_t window_steps)
{
	struct class_table *table = new_table(window_steps);
	uint64_t kept = 0;

	for (uint64_t i = 0; i < 3000; i++)
		add(table, i);
	for (uint64_t i = 0; i < 3000; i++)
		kept += has(table, i);
	class_table__free(table);
	return kept;
}

static void the_steps_of_all_classes_are_bounded(void **state)
{
	assert_int_equal(classes_kept(10), CLASSES_MAX);
	assert_int_equal(classes_kept(128), CLASSES_MAX);
	assert_int_equal(classes_kept(256), 512);
	assert_int_equal(classes_kept(1024), 128);
	assert_int_equal(classes_kept(CLASS_STEPS_MAX), 1);
}

/* Random keys, many of which share a chain, against the times of their use. */
static void any_order_of_questions_is_kept(void **state)
{
	enum { KEYS = 1500 };
	struct class_table *table = new_table(64);
	uint64_t keys[KEYS], used[KEYS] = {0}, seed = 3;

	for (int i = 0; i < KEYS; i++)
		keys[i] = next_random(&seed);
	for (uint64_t now = 1; now < 20000; now++) {
		uint64_t key = random_below(&seed, KEYS), newer = 0;
		bool kept;

		for (uint64_t i = 0; i < KEYS; i++)
			newer += used[i] > used[key];
		kept = used[key] && newer < CLASSES_MAX;
		assert_int_equal(has(table, keys[key]), kept);
		if (!kept)
			add(table, keys[key]);
		used[key] = now;
	}
	class_table__free(table);
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		TEST(classes_are_found_by_their_keys),
		TEST(the_class_not_asked_for_longest_goes),
		TEST(the_steps_of_all_classes_are_bounded),
		TEST(any_order_of_questions_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
