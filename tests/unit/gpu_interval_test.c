/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Sets of time against sets of bits: the whole algebra on 64 ticks. */
#include "judged_fixture.h"

#include "gpu_interval.h"

#define ROUNDS 20000

/* Bit i: the tick from i to i + 1. */
static uint64_t bits_of(const gpu_interval_vec *set)
{
	uint64_t bits = 0;

	vec_for_each (interval, set) {
		assert_true(interval->start_ns < interval->end_ns);
		for (uint64_t i = interval->start_ns; i < interval->end_ns; i++)
			bits |= UINT64_C(1) << i;
	}
	/* By start, none touching the next. */
	for (size_t i = 1; i < set->count; i++)
		assert_true(set->items[i - 1].end_ns < set->items[i].start_ns);
	return bits;
}

static uint64_t count_of(uint64_t bits)
{
	return (uint64_t)__builtin_popcountll(bits);
}

static struct gpu_interval roll(uint64_t *seed, uint64_t from)
{
	uint64_t start = from + random_below(seed, 12), end = start + random_below(seed, 10);

	return (struct gpu_interval){start < 64 ? start : 64, end < 64 ? end : 64};
}

/* By start, overlapping, touching, empty ones too. */
static uint64_t roll_set(uint64_t *seed, gpu_interval_vec *set)
{
	uint64_t bits = 0, from = 0;

	while (random_below(seed, 6)) {
		struct gpu_interval interval = roll(seed, from);

		from = interval.start_ns;
		for (uint64_t i = interval.start_ns; i < interval.end_ns; i++)
			bits |= UINT64_C(1) << i;
		assert_int_equal(gpu_interval_append(set, interval), 0);
	}
	assert_int_equal(bits_of(set), bits);
	return bits;
}

static void sets_are_sets(void **state)
{
	uint64_t seed = 1;

	for (int i = 0; i < ROUNDS; i++) {
		gpu_interval_vec a = {0}, b = {0}, either = {0}, both = {0}, rest = {0};
		uint64_t a_bits = roll_set(&seed, &a), b_bits = roll_set(&seed, &b);

		assert_int_equal(gpu_interval_length(&a), count_of(a_bits));
		assert_int_equal(gpu_interval_common(&a, &b), count_of(a_bits & b_bits));
		assert_int_equal(gpu_interval_unite(&a, &b, &either), 0);
		assert_int_equal(gpu_interval_intersect(&a, &b, &both), 0);
		assert_int_equal(gpu_interval_subtract(&a, &b, &rest), 0);
		assert_int_equal(bits_of(&either), a_bits | b_bits);
		assert_int_equal(bits_of(&both), a_bits & b_bits);
		assert_int_equal(bits_of(&rest), a_bits & ~b_bits);
		vec_free(&a);
		vec_free(&b);
		vec_free(&either);
		vec_free(&both);
		vec_free(&rest);
	}
}

static void intervals_are_sorted_into_a_set(void **state)
{
	uint64_t seed = 2;

	for (int i = 0; i < ROUNDS; i++) {
		gpu_interval_vec set = {0};
		uint64_t bits = 0;

		while (random_below(&seed, 8)) {
			struct gpu_interval interval = roll(&seed, random_below(&seed, 50));

			for (uint64_t k = interval.start_ns; k < interval.end_ns; k++)
				bits |= UINT64_C(1) << k;
			assert_int_equal(vec_push(&set, interval), 0);
		}
		gpu_interval_sort(&set);
		assert_int_equal(bits_of(&set), bits);
		vec_free(&set);
	}
}

/* Asked for by start, overlapping ones too. */
static void a_set_is_asked_in_passing(void **state)
{
	uint64_t seed = 3;

	for (int i = 0; i < ROUNDS; i++) {
		gpu_interval_vec set = {0};
		uint64_t bits = roll_set(&seed, &set), from = 0;
		size_t next = 0;

		while (random_below(&seed, 8)) {
			struct gpu_interval asked = roll(&seed, from);
			uint64_t expected = 0;

			from = asked.start_ns;
			for (uint64_t k = asked.start_ns; k < asked.end_ns; k++)
				expected += bits >> k & 1;
			assert_int_equal(gpu_interval_common_with(&set, &next, asked), expected);
		}
		vec_free(&set);
	}
}

static void an_interval_out_of_order_adds_only_what_lies_behind(void **state)
{
	gpu_interval_vec set = {0};

	assert_int_equal(gpu_interval_append(&set, (struct gpu_interval){10, 20}), 0);
	assert_int_equal(gpu_interval_append(&set, (struct gpu_interval){5, 8}), 0);
	assert_int_equal(gpu_interval_append(&set, (struct gpu_interval){5, 25}), 0);
	assert_int_equal(set.count, 1);
	assert_int_equal(gpu_interval_length(&set), 15);
	vec_free(&set);
}

static void what_is_backwards_is_empty(void **state)
{
	gpu_interval_vec set = {0};

	assert_int_equal(gpu_interval_append(&set, (struct gpu_interval){9, 3}), 0);
	assert_int_equal(gpu_interval_append(&set, (struct gpu_interval){9, 9}), 0);
	assert_int_equal(set.count, 0);
	assert_int_equal(gpu_interval_ns((struct gpu_interval){9, 3}), 0);
	assert_int_equal(gpu_ns_since(3, 9), 0);
	assert_int_equal(gpu_interval_ns(gpu_interval_clip((struct gpu_interval){1, 5},
							   (struct gpu_interval){7, 9})),
			 0);
}

static void nothing_wraps_around(void **state)
{
	gpu_interval_vec set = {0};
	size_t next = 0;

	assert_int_equal(gpu_ns_add(UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(gpu_interval_append(&set, (struct gpu_interval){0, UINT64_MAX}), 0);
	assert_int_equal(gpu_interval_length(&set), UINT64_MAX);
	assert_int_equal(
		gpu_interval_common_with(&set, &next, (struct gpu_interval){5, UINT64_MAX}),
		UINT64_MAX - 5);
	assert_int_equal(gpu_interval_common(&set, &set), UINT64_MAX);
	vec_free(&set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		TEST(sets_are_sets),
		TEST(intervals_are_sorted_into_a_set),
		TEST(a_set_is_asked_in_passing),
		TEST(an_interval_out_of_order_adds_only_what_lies_behind),
		TEST(what_is_backwards_is_empty),
		TEST(nothing_wraps_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
