/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel/loader.h"

#define RING_BYTES (128ull << 20)

static struct shared choose(enum fbt_detail detail, uint32_t ring_records, uint32_t threads)
{
	struct shared shared = {0};

	sizing_choose(&shared, detail, ring_records, threads);
	return shared;
}

static uint64_t ring_bytes(const struct shared *shared)
{
	return ((uint64_t)shared->cpu_count << shared->ring_shift) * sizeof(struct fbt_ring_call);
}

/* An entry takes 56 bytes, so the default size fits with up to 18 CPUs. */
static void default_rings_are_as_large_as_the_machine_allows(void **state)
{
	struct shared shared = choose(FBT_DETAIL_ALL, 0, 10);

	assert_true(shared.ring_shift <= 17);
	assert_true(shared.ring_shift >= 12);
	if (shared.cpu_count <= 18)
		assert_int_equal(shared.ring_shift, 17);
	if (shared.ring_shift > 12)
		assert_true(ring_bytes(&shared) <= RING_BYTES);
	if (shared.ring_shift < 17)
		assert_true(ring_bytes(&shared) * 2 > RING_BYTES);
}

static void wanted_rings_are_rounded_up_whatever_they_take(void **state)
{
	assert_int_equal(choose(FBT_DETAIL_ALL, 5000, 10).ring_shift, 13);
	assert_int_equal(choose(FBT_DETAIL_ESCALATED, 1u << 20, 10).ring_shift, 20);
}

static void rings_are_never_smaller_than_twice_their_margin(void **state)
{
	assert_int_equal(1u << choose(FBT_DETAIL_ALL, 1, 10).ring_shift, 2 * FBT_RING_MARGIN);
}

static void without_calls_the_rings_are_the_smallest(void **state)
{
	assert_int_equal(1u << choose(FBT_DETAIL_STEPS, 0, 10).ring_shift, 2 * FBT_RING_MARGIN);
	assert_int_equal(1u << choose(FBT_DETAIL_STEPS, 65536, 10).ring_shift, 2 * FBT_RING_MARGIN);
	assert_int_equal(1u << choose(FBT_DETAIL_PROBES, 65536, 10).ring_shift,
			 2 * FBT_RING_MARGIN);
}

static void there_are_slots_for_the_threads_and_many_more(void **state)
{
	assert_int_equal(choose(FBT_DETAIL_ALL, 0, 0).slot_count, 1024);
	assert_int_equal(choose(FBT_DETAIL_ALL, 0, 256).slot_count, 1024);
	assert_int_equal(choose(FBT_DETAIL_ALL, 0, 257).slot_count, 2048);
	assert_int_equal(choose(FBT_DETAIL_ALL, 0, 1000000).slot_count, FBT_SLOTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_rings_are_as_large_as_the_machine_allows),
		cmocka_unit_test(wanted_rings_are_rounded_up_whatever_they_take),
		cmocka_unit_test(rings_are_never_smaller_than_twice_their_margin),
		cmocka_unit_test(without_calls_the_rings_are_the_smallest),
		cmocka_unit_test(there_are_slots_for_the_threads_and_many_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
