/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "gpu/timeline.h"

#define ENTRIES 3000

/* A timeline as a plain sorted array. */
struct reference {
	struct gpu_timeline_entry entries[ENTRIES];
	size_t count;
};

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void insert_reference(struct reference *reference, struct gpu_timeline_entry entry)
{
	size_t place = reference->count++;

	for (; place && reference->entries[place - 1].start_ns > entry.start_ns; place--)
		reference->entries[place] = reference->entries[place - 1];
	reference->entries[place] = entry;
}

static void check_range(const struct gpu_timeline *timeline, const struct reference *reference,
			uint64_t from_ns, uint64_t until_ns)
{
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(timeline, from_ns, until_ns);
	const struct gpu_timeline_entry *entry;

	for (size_t i = 0; i < reference->count; i++) {
		const struct gpu_timeline_entry *expected = &reference->entries[i];

		if (expected->start_ns >= until_ns ||
		    (expected->end_ns <= from_ns && expected->start_ns < from_ns))
			continue;
		entry = gpu_timeline__next(&cursor);
		assert_non_null(entry);
		assert_ptr_equal(entry->record, expected->record);
	}
	assert_null(gpu_timeline__next(&cursor));
}

/* spread: how far entries may be out of order. */
static void compare(uint32_t seed, uint64_t spread)
{
	struct gpu_timeline *timeline = gpu_timeline__new();
	struct reference *reference = calloc(1, sizeof(*reference));

	assert_non_null(timeline);
	assert_non_null(reference);
	for (uint64_t i = 0; i < ENTRIES; i++) {
		uint64_t start_ns = i * 3 + next_random(&seed) % spread;
		uint64_t end_ns = start_ns + next_random(&seed) % (i % 50 ? 5 : 500);
		struct gpu_timeline_entry entry = {start_ns, end_ns, (void *)(uintptr_t)(i + 1)};

		assert_int_equal(gpu_timeline__insert(timeline, start_ns, end_ns, entry.record), 0);
		insert_reference(reference, entry);
		if (next_random(&seed) % 3 == 0) {
			assert_ptr_equal(gpu_timeline__first(timeline)->record,
					 reference->entries[0].record);
			gpu_timeline__drop_first(timeline);
			reference->count--;
			for (size_t j = 0; j < reference->count; j++)
				reference->entries[j] = reference->entries[j + 1];
		}
		assert_int_equal(gpu_timeline__count(timeline), reference->count);
		if (i % 100 == 0)
			check_range(timeline, reference, start_ns / 2,
				    start_ns / 2 + next_random(&seed) % 2000);
	}
	check_range(timeline, reference, 0, UINT64_MAX);
	while (gpu_timeline__count(timeline))
		gpu_timeline__drop_first(timeline);
	assert_null(gpu_timeline__first(timeline));
	gpu_timeline__free(timeline);
	free(reference);
}

static void entries_are_found_by_time_in_whatever_order_they_come(void **state)
{
	for (uint32_t seed = 1; seed <= 10; seed++) {
		compare(seed, 1);
		compare(seed, 100);
		compare(seed, 10000);
	}
}

static void entries_of_one_start_stay_in_the_order_they_came(void **state)
{
	struct gpu_timeline *timeline = gpu_timeline__new();
	struct gpu_timeline_cursor cursor;

	for (uintptr_t i = 1; i <= 1000; i++)
		assert_int_equal(gpu_timeline__insert(timeline, 5, 5 + i % 7, (void *)i), 0);
	cursor = gpu_timeline__overlapping(timeline, 5, 6);
	for (uintptr_t i = 1; i <= 1000; i++)
		assert_ptr_equal(gpu_timeline__next(&cursor)->record, (void *)i);
	gpu_timeline__free(timeline);
}

static void what_takes_no_time_is_where_it_begins(void **state)
{
	struct gpu_timeline *timeline = gpu_timeline__new();
	struct gpu_timeline_cursor cursor;

	assert_int_equal(gpu_timeline__insert(timeline, 10, 10, (void *)1), 0);
	cursor = gpu_timeline__overlapping(timeline, 10, 20);
	assert_non_null(gpu_timeline__next(&cursor));
	cursor = gpu_timeline__overlapping(timeline, 0, 10);
	assert_null(gpu_timeline__next(&cursor));
	cursor = gpu_timeline__overlapping(timeline, 11, 20);
	assert_null(gpu_timeline__next(&cursor));
	gpu_timeline__free(timeline);
}

static void an_empty_one_has_nothing(void **state)
{
	struct gpu_timeline *timeline = gpu_timeline__new();
	struct gpu_timeline_cursor cursor = gpu_timeline__overlapping(timeline, 0, UINT64_MAX);

	assert_null(gpu_timeline__next(&cursor));
	assert_null(gpu_timeline__first(timeline));
	assert_int_equal(gpu_timeline__count(timeline), 0);
	gpu_timeline__free(timeline);
	gpu_timeline__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found_by_time_in_whatever_order_they_come),
		cmocka_unit_test(entries_of_one_start_stay_in_the_order_they_came),
		cmocka_unit_test(what_takes_no_time_is_where_it_begins),
		cmocka_unit_test(an_empty_one_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
