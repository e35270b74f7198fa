/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judged_fixture.h"

#include <math.h>

#include "judge/class.h"

static uint64_t usual_work(const struct class_history *history)
{
	struct cause_times usual;

	class_history__usual(history, &usual);
	return cause_work_ns(&usual);
}

/* Work, and the rest as time on locks. */
static struct cause_times times_of(uint64_t work_ns, uint64_t rest_ns)
{
	return (struct cause_times){
		.ns = {[CAUSE_COMPUTE] = work_ns, [CAUSE_LOCK_CONTENTION] = rest_ns}};
}

static void add(struct class_history *history, uint64_t work_ns, uint64_t rest_ns)
{
	struct cause_times times = times_of(work_ns, rest_ns);

	assert_int_equal(class_history__add(history, &times, 1), 0);
}

static struct class_history *new_history(uint32_t window_steps)
{
	struct class_history *history = class_history__new(window_steps);

	assert_non_null(history);
	return history;
}

static void a_history_of_nothing_is_zero(void **state)
{
	struct class_history *history = new_history(64);
	struct cause_times usual;

	memset(&usual, 0xff, sizeof(usual));
	class_history__usual(history, &usual);
	for (int i = 0; i < CAUSE_COUNT; i++)
		assert_int_equal(usual.ns[i], 0);
	assert_int_equal(usual.threads_made + usual.signals, 0);
	assert_int_equal(class_history__count(history), 0);
	assert_int_equal(usual_work(history), 0);
	assert_int_equal(class_history__usual_rest_ns(history), 0);
	assert_int_equal(class_history__usual_ns(history), 0);
	assert_true(class_history__cv_percent(history) == 0.0);
	class_history__free(history);
}

/* round(0.5 * (n - 1)): the upper one of two in the middle. */
static void medians_have_the_seeds_rank(void **state)
{
	struct class_history *history = new_history(64);

	add(history, 30, 3);
	assert_int_equal(usual_work(history), 30);
	add(history, 10, 9);
	assert_int_equal(usual_work(history), 30);
	assert_int_equal(class_history__usual_rest_ns(history), 9);
	add(history, 20, 1);
	assert_int_equal(usual_work(history), 20);
	assert_int_equal(class_history__usual_rest_ns(history), 3);
	assert_int_equal(class_history__usual_ns(history), 21);
	class_history__free(history);
}

static void the_oldest_step_goes(void **state)
{
	struct class_history *history = new_history(10);

	for (uint64_t i = 0; i < 10; i++)
		add(history, 100, 5);
	for (uint64_t i = 0; i < 5; i++)
		add(history, 200, 50);
	assert_int_equal(class_history__count(history), 10);
	assert_int_equal(usual_work(history), 200);
	for (uint64_t i = 0; i < 5; i++)
		add(history, 1, 0);
	assert_int_equal(usual_work(history), 200);
	add(history, 1, 0);
	assert_int_equal(usual_work(history), 1);
	assert_int_equal(class_history__usual_rest_ns(history), 0);
	assert_int_equal(class_history__count(history), 10);
	class_history__free(history);
}

static void what_another_class_may_wait_grows_with_its_work(void **state)
{
	struct class_history *history = new_history(64);

	assert_int_equal(class_history__rest_for_ns(history, 0, 20 * MS), 0);
	add(history, 0, 100 * US);
	assert_int_equal(class_history__rest_for_ns(history, 0, 20 * MS), 100 * US);
	class_history__free(history);
	history = new_history(64);
	add(history, 20 * MS, 100 * US);
	assert_int_equal(class_history__rest_for_ns(history, 0, 0), 100 * US);
	assert_int_equal(class_history__rest_for_ns(history, 0, 20 * MS), 100 * US);
	assert_int_equal(class_history__rest_for_ns(history, 0, 50 * MS), 250 * US);
	class_history__free(history);
	history = new_history(64);
	add(history, 1, UINT64_MAX / 2);
	assert_true(class_history__rest_for_ns(history, 0, UINT64_MAX) == UINT64_MAX);
	class_history__free(history);
}

/* Only keys that both are of arguments say how much there is to do. */
static void what_another_class_may_wait_grows_with_its_argument(void **state)
{
	const uint64_t by_argument = 0x100;
	struct cause_times times = {.ns = {[CAUSE_COMPUTE] = MS, [CAUSE_LOCK_CONTENTION] = MS}};
	struct class_table *table = class_table__new(64);
	struct class_history *history = class_table__add(table, by_argument | 4);

	assert_int_equal(class_table__add_step(table, history, &times), 0);
	assert_int_equal(class_history__rest_for_ns(history, by_argument | 4, MS), MS);
	assert_int_equal(class_history__rest_for_ns(history, by_argument | 7, MS), 8 * MS);
	assert_int_equal(class_history__rest_for_ns(history, by_argument | 7, 9 * MS), 9 * MS);
	assert_int_equal(class_history__rest_for_ns(history, by_argument | 1, MS), MS);
	assert_int_equal(class_history__rest_for_ns(history, 7, MS), MS);
	assert_true(class_history__rest_for_ns(history, by_argument | 64, MS) == UINT64_MAX);
	class_table__free(table);
}

static void each_part_has_its_own_median(void **state)
{
	struct class_history *history = new_history(64);
	struct cause_times usual;

	for (uint64_t i = 0; i < 11; i++) {
		struct cause_times times = {.threads_made = (uint32_t)i, .signals = 10 * i};

		for (uint64_t part = 0; part < CAUSE_COUNT; part++)
			times.ns[part] = 1000 * part + (i * 7) % 11;
		assert_int_equal(class_history__add(history, &times, 1), 0);
	}
	class_history__usual(history, &usual);
	for (int part = 0; part < CAUSE_COUNT; part++)
		assert_int_equal(usual.ns[part], 1000 * part + 5);
	assert_int_equal(usual.threads_made, 5);
	assert_int_equal(usual.signals, 50);
	class_history__free(history);
}

static void cv_of_equal_steps_is_zero(void **state)
{
	struct class_history *history = new_history(64);

	for (int i = 0; i < 64; i++)
		add(history, 20 * MS + (uint64_t)i * US, 3 * MS);
	assert_true(class_history__cv_percent(history) == 0.0);
	class_history__free(history);
}

static void cv_of_nothing_but_zeros_is_zero(void **state)
{
	struct class_history *history = new_history(64);

	for (int i = 0; i < 12; i++)
		add(history, 0, 0);
	assert_true(class_history__cv_percent(history) == 0.0);
	class_history__free(history);
}

/* Values 1 and 3: mean 2, population deviation 1. The sample one would be 51.6 %. */
static void cv_is_of_the_population(void **state)
{
	struct class_history *history = new_history(64);

	for (uint64_t i = 0; i < 16; i++)
		add(history, 1, i % 2 ? 0 : 2);
	assert_true(class_history__cv_percent(history) == 50.0);
	class_history__free(history);
}

static void a_rare_outlier_is_no_part_of_cv(void **state)
{
	struct class_history *history = new_history(64);

	for (uint64_t i = 0; i < 64; i++)
		add(history, 20 * MS, i == 40 ? 300 * MS : i % 2 * MS);
	assert_true(class_history__cv_percent(history) < 3.0);
	class_history__free(history);
}

/* 9 of 12 pass the filter: fewer than 10, so all count. */
static void cv_of_few_that_pass_is_that_of_all(void **state)
{
	struct class_history *history = new_history(64);
	double mean, squares;

	for (uint64_t i = 0; i < 12; i++)
		add(history, 10, i < 2 ? 1000 : i == 2 ? 500 : 0);
	mean = (2 * 1010.0 + 510 + 9 * 10) / 12;
	squares = 2 * (1010 - mean) * (1010 - mean) + (510 - mean) * (510 - mean) +
		  9 * (10 - mean) * (10 - mean);
	assert_true(fabs(class_history__cv_percent(history) - sqrt(squares / 12) / mean * 100) <
		    1e-9);
	class_history__free(history);
}

/* Quartiles 20 and 30: 5 and 45 are just inside. Mean 25, squares 2 * 400 + 14 * 25. */
static void steps_at_the_edge_of_the_filter_count(void **state)
{
	struct class_history *history = new_history(64);

	add(history, 0, 5);
	add(history, 0, 45);
	for (uint64_t i = 0; i < 14; i++)
		add(history, 0, i % 2 ? 20 : 30);
	assert_true(fabs(class_history__cv_percent(history) - sqrt(1150.0 / 16) / 25 * 100) < 1e-9);
	class_history__free(history);
}

static void extreme_steps_do_no_harm(void **state)
{
	struct class_history *history = new_history(16);

	for (int i = 0; i < 40; i++)
		add(history, i % 2 ? UINT64_MAX : 0, i % 2 ? 0 : UINT64_MAX);
	assert_true(class_history__cv_percent(history) >= 0.0);
	assert_true(class_history__usual_ns(history) == UINT64_MAX);
	class_history__free(history);
}

#define STEPS 700 /* that the plain way is asked about: it sorts all of them each time */

static int compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static uint64_t plain_median(const uint64_t *values, size_t count)
{
	uint64_t sorted[STEPS];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), compare);
	return sorted[(size_t)round(0.5 * (double)(count - 1))];
}

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* headless/mod.rs, line by line. */
static double plain_cv(const double *data, size_t count)
{
	double sorted[STEPS], kept[STEPS], sum = 0, squares = 0, mean;
	size_t kept_count = 0;

	memcpy(sorted, data, count * sizeof(*data));
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	for (size_t i = 0; i < count; i++) {
		double q1 = sorted[count / 4], q3 = sorted[3 * count / 4], iqr = q3 - q1;

		if (count < 4 || (data[i] >= q1 - 1.5 * iqr && data[i] <= q3 + 1.5 * iqr))
			kept[kept_count++] = data[i];
	}
	if (kept_count < 10) {
		memcpy(kept, data, count * sizeof(*data));
		kept_count = count;
	}
	for (size_t i = 0; i < kept_count; i++)
		sum += kept[i];
	mean = sum / (double)kept_count;
	for (size_t i = 0; i < kept_count; i++)
		squares += (kept[i] - mean) * (kept[i] - mean);
	return mean > 0 ? sqrt(squares / (double)kept_count) / mean * 100.0 : 0;
}

static void check_window(const struct class_history *history, const struct cause_times *steps,
			 size_t count)
{
	uint64_t works[STEPS] = {0}, rests[STEPS] = {0}, totals[STEPS] = {0}, work;
	double data[STEPS], cv;

	for (size_t i = 0; i < count; i++) {
		works[i] = steps[i].ns[CAUSE_COMPUTE];
		rests[i] = steps[i].ns[CAUSE_LOCK_CONTENTION];
		totals[i] = works[i] + rests[i];
	}
	work = plain_median(works, count);
	for (size_t i = 0; i < count; i++)
		data[i] = (double)work + (double)rests[i];
	cv = plain_cv(data, count);
	assert_int_equal(class_history__count(history), count);
	assert_int_equal(usual_work(history), work);
	assert_int_equal(class_history__usual_rest_ns(history), plain_median(rests, count));
	assert_int_equal(class_history__usual_ns(history), plain_median(totals, count));
	assert_true(fabs(class_history__cv_percent(history) - cv) <= 1e-9 * (1 + cv));
}

static uint64_t random_rest(uint64_t *seed)
{
	switch (random_below(seed, 8)) {
	case 0:
		return 0;
	case 1:
		return random_below(seed, 300 * MS);
	case 2:
		return 5 * MS;
	}
	return random_below(seed, 10 * MS);
}

static void medians_and_cv_are_those_of_the_plain_way(void **state)
{
	static const uint32_t windows[] = {1, 2, 3, 4, 10, 11, 64, 100, 257};
	static struct cause_times steps[STEPS];
	uint64_t seed = 7;

	for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
		struct class_history *history = new_history(windows[w]);

		for (size_t i = 0; i < STEPS; i++) {
			size_t count = i + 1 < windows[w] ? i + 1 : windows[w];

			steps[i] = times_of(20 * MS + random_below(&seed, 15 * MS),
					    random_rest(&seed));
			assert_int_equal(class_history__add(history, &steps[i], i), 0);
			check_window(history, &steps[i + 1 - count], count);
		}
		class_history__free(history);
	}
}

static struct class_table *new_table(uint32_t window_steps)
{
	struct class_table *table = class_table__new(window_steps);

	assert_non_null(table);
	return table;
}

/* Adds a class that is known by the work of its one step. */
static void add_class(struct class_table *table, uint64_t key)
{
	struct cause_times times = {.ns = {[CAUSE_COMPUTE] = key + 1}};
	struct class_history *history = class_table__add(table, key);

	assert_non_null(history);
	assert_int_equal(class_history__count(history), 0);
	assert_int_equal(class_history__add(history, &times, 1), 0);
}

static bool has(struct class_table *table, uint64_t key)
{
	struct class_history *history = class_table__find(table, key);

	if (!history)
		return false;
	assert_int_equal(usual_work(history), key + 1);
	return true;
}

static void classes_are_found_by_their_keys(void **state)
{
	struct class_table *table = new_table(64);

	assert_false(has(table, 0));
	for (uint64_t i = 0; i < CLASSES_MAX; i++)
		add_class(table, i << 32 | i);
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
		add_class(table, i);
	assert_true(has(table, 0));
	add_class(table, CLASSES_MAX);
	assert_false(has(table, 1));
	assert_true(has(table, 0));
	assert_true(has(table, 2));
	add_class(table, CLASSES_MAX + 1);
	assert_false(has(table, 3));
	assert_true(has(table, CLASSES_MAX) && has(table, CLASSES_MAX + 1));
	class_table__free(table);
}

static uint64_t classes_kept(uint32_t window_steps)
{
	struct class_table *table = new_table(window_steps);
	uint64_t kept = 0;

	for (uint64_t i = 0; i < 3000; i++)
		add_class(table, i);
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
			add_class(table, keys[key]);
		used[key] = now;
	}
	class_table__free(table);
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		TEST(a_history_of_nothing_is_zero),
		TEST(medians_have_the_seeds_rank),
		TEST(the_oldest_step_goes),
		TEST(what_another_class_may_wait_grows_with_its_work),
		TEST(what_another_class_may_wait_grows_with_its_argument),
		TEST(each_part_has_its_own_median),
		TEST(cv_of_equal_steps_is_zero),
		TEST(cv_of_nothing_but_zeros_is_zero),
		TEST(cv_is_of_the_population),
		TEST(a_rare_outlier_is_no_part_of_cv),
		TEST(cv_of_few_that_pass_is_that_of_all),
		TEST(steps_at_the_edge_of_the_filter_count),
		TEST(extreme_steps_do_no_harm),
		TEST(medians_and_cv_are_those_of_the_plain_way),
		TEST(classes_are_found_by_their_keys),
		TEST(the_class_not_asked_for_longest_goes),
		TEST(the_steps_of_all_classes_are_bounded),
		TEST(any_order_of_questions_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
