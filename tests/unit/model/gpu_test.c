/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/gpu.h"
#include "base/arith.h"
#include "judged_fixture.h"

static int open_table(void **state)
{
	*state = calloc(1, sizeof(struct gpu_table));
	return *state ? 0 : -1;
}

static int close_table(void **state)
{
	gpu_table_clear(*state);
	free(*state);
	return 0;
}

static void add_name(struct gpu_table *table, uint32_t id, uint32_t kind, const char *text)
{
	struct fbt_gpu_name name = {.tgid = 7, .id = id, .kind = kind};

	assert_int_equal(gpu_table_add_name(table, &name, text), 0);
}

static void processes_are_found_by_their_number(void **state)
{
	static const uint32_t tgids[] = {9, 3, 7, 1};

	for (size_t i = 0; i < 4; i++) {
		struct fbt_gpu_flush flush = {.tgid = tgids[i], .records = tgids[i]};

		assert_int_equal(gpu_table_set_flush(*state, &flush), 0);
	}
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(gpu_table_find(*state, tgids[i])->flush.records, tgids[i]);
	assert_null(gpu_table_find(*state, 2));
	assert_null(gpu_table_find(*state, 10));
}

static int set_state(struct gpu_table *table, uint32_t tgid, enum fbt_gpu_status status)
{
	const struct fbt_gpu_state record = {.tgid = tgid, .status = status};

	return gpu_table_set_state(table, &record, "", "");
}

static void processes_are_bounded(void **state)
{
	struct gpu_table *table = *state;

	for (uint32_t tgid = 1; tgid <= GPU_PROCESSES_MAX; tgid++)
		assert_int_equal(set_state(table, tgid, FBT_GPU_ARMED), 0);
	assert_int_equal(set_state(table, GPU_PROCESSES_MAX + 1, FBT_GPU_ARMED), -ENOSPC);
	assert_int_equal(set_state(table, 1, FBT_GPU_EXITED), 0);
	assert_int_equal(gpu_table_find(table, 1)->state.status, FBT_GPU_EXITED);
	assert_int_equal(table->processes.count, GPU_PROCESSES_MAX);
}

static void children_without_cuda_leave_room_for_those_with(void **state)
{
	struct gpu_table *table = *state;

	for (uint32_t tgid = 1; tgid <= 2 * GPU_PROCESSES_MAX; tgid++)
		assert_int_equal(set_state(table, tgid, FBT_GPU_NOT_CUDA), 0);
	assert_int_equal(table->processes.count, GPU_IDLE_MAX);
	assert_int_equal(set_state(table, 2 * GPU_PROCESSES_MAX, FBT_GPU_ARMED), 0);
	assert_non_null(gpu_table_find(table, 2 * GPU_PROCESSES_MAX));
}

static void a_later_state_replaces_the_earlier_one(void **state)
{
	struct fbt_gpu_state record = {.tgid = 7, .status = FBT_GPU_ARMED};
	const struct gpu_process *process;

	assert_int_equal(gpu_table_set_state(*state, &record, "", "/lib/libcupti.so.13"), 0);
	record.status = FBT_GPU_BUSY;
	assert_int_equal(gpu_table_set_state(*state, &record, "held by nsys", ""), 0);
	process = gpu_table_find(*state, 7);
	assert_int_equal(process->state.status, FBT_GPU_BUSY);
	assert_string_equal(process->detail, "held by nsys");
	assert_true(process->armed);
}

static void names_are_shown_as_people_write_them(void **state)
{
	const struct gpu_process *process;

	add_name(*state, 2, FBT_GPU_NAME_KERNEL, "_Z7mul_matILi8EEvPKfi");
	add_name(*state, 3, FBT_GPU_NAME_API, "cudaLaunchKernel_v7000");
	add_name(*state, 4, FBT_GPU_NAME_API, "cuMemcpyHtoDAsync_v2");
	add_name(*state, 5, FBT_GPU_NAME_KERNEL, "gemv2T_kernel_val");
	add_name(*state, 6, FBT_GPU_NAME_API, "cudaLaunchKernel_ptsz_v7000");
	process = gpu_table_find(*state, 7);
	assert_string_equal(gpu_process_kernel_name(process, 2),
			    "void mul_mat<8>(float const*, int)");
	assert_string_equal(gpu_process_api_name(process, 3), "cudaLaunchKernel");
	assert_string_equal(gpu_process_api_name(process, 4), "cuMemcpyHtoDAsync_v2");
	assert_string_equal(gpu_process_kernel_name(process, 5), "gemv2T_kernel_val");
	assert_string_equal(gpu_process_api_name(process, 6), "cudaLaunchKernel_ptsz");
}

static void a_name_that_is_not_known_has_a_stand_in(void **state)
{
	const struct gpu_process *process;

	add_name(*state, 2, FBT_GPU_NAME_KERNEL, "k");
	process = gpu_table_find(*state, 7);
	assert_string_equal(gpu_process_kernel_name(process, 0), "kernel");
	assert_string_equal(gpu_process_kernel_name(process, 1), "kernel");
	assert_string_equal(gpu_process_kernel_name(process, 3), "kernel");
	assert_string_equal(gpu_process_api_name(process, 2), "cuda call");
}

static void a_name_that_comes_again_is_replaced(void **state)
{
	add_name(*state, 1, FBT_GPU_NAME_KERNEL, "before");
	add_name(*state, 1, FBT_GPU_NAME_KERNEL, "after");
	assert_string_equal(gpu_process_kernel_name(gpu_table_find(*state, 7), 1), "after");
	assert_int_equal(gpu_table_find(*state, 7)->name_bytes, 12);
}

/* A name takes only its own bytes: a capture of a megabyte may hold the names of many processes. */
static void a_name_takes_no_room_for_those_before_it(void **state)
{
	const struct gpu_process *process;

	add_name(*state, FBT_GPU_NAMES_MAX, FBT_GPU_NAME_KERNEL, "last");
	add_name(*state, 3, FBT_GPU_NAME_KERNEL, "third");
	add_name(*state, 5, FBT_GPU_NAME_API, "fifth");
	process = gpu_table_find(*state, 7);
	assert_int_equal(process->names.count, 3);
	assert_string_equal(gpu_process_kernel_name(process, 3), "third");
	assert_string_equal(gpu_process_kernel_name(process, 4), "kernel");
	assert_string_equal(gpu_process_api_name(process, 5), "fifth");
	assert_string_equal(gpu_process_kernel_name(process, FBT_GPU_NAMES_MAX), "last");
}

/* A process may send names without end. */
static void bytes_of_names_are_bounded(void **state)
{
	struct fbt_gpu_name name = {.tgid = 7};
	char *text = malloc(FBT_GPU_NAME_BYTES_MAX);
	int err = 0;

	memset(text, 'x', FBT_GPU_NAME_BYTES_MAX - 1);
	text[FBT_GPU_NAME_BYTES_MAX - 1] = '\0';
	for (name.id = 1; !err && name.id <= FBT_GPU_NAMES_MAX; name.id++)
		err = gpu_table_add_name(*state, &name, text);
	assert_int_equal(err, -ENOSPC);
	assert_true(gpu_table_find(*state, 7)->name_bytes <= GPU_NAME_BYTES_MAX);
	/* A known name can still be replaced by a shorter one. */
	add_name(*state, 1, FBT_GPU_NAME_KERNEL, "short");
	free(text);
}

static void devices_are_in_order_and_bounded(void **state)
{
	struct fbt_gpu_device device = {.tgid = 7};
	const struct gpu_process *process;

	for (device.id = GPU_DEVICES_MAX; device.id; device.id--)
		assert_int_equal(gpu_table_add_device(*state, &device, "H200"), 0);
	device.id = 1000;
	assert_int_equal(gpu_table_add_device(*state, &device, "one too many"), -ENOSPC);
	device.id = 5;
	assert_int_equal(gpu_table_add_device(*state, &device, "again"), 0);
	process = gpu_table_find(*state, 7);
	for (size_t i = 0; i < GPU_DEVICES_MAX; i++)
		assert_int_equal(process->devices.items[i].record.id, i + 1);
	assert_string_equal(gpu_process_device(process, 5)->name, "again");
	assert_null(gpu_process_device(process, 1000));
}

static void versions_have_the_names_of_cuda_releases(void **state)
{
	char text[32];

	assert_string_equal(gpu_cupti_version_name(18, text), "11.8");
	assert_string_equal(gpu_cupti_version_name(26, text), "12.8");
	assert_string_equal(gpu_cupti_version_name(130000, text), "13.0");
	assert_string_equal(gpu_cupti_version_name(130001, text), "13.0 U1");
	assert_string_equal(gpu_cupti_version_name(130400, text), "13.4");
	assert_string_equal(gpu_cupti_version_name(25, text), "CUPTI 25");
	assert_string_equal(gpu_cupti_version_name(0, text), "CUPTI 0");
	assert_string_equal(gpu_cupti_version_name(UINT32_MAX, text), "CUPTI 4294967295");
	(void)state;
}

static void one_violation_in_a_thousand_is_no_suspicion(void **state)
{
	struct gpu_process process = {.counts = {.joined = 1000, .violations = 1}};

	assert_false(gpu_process_is_clock_suspect(&process));
	process.counts.violations = 2;
	assert_true(gpu_process_is_clock_suspect(&process));
	process.counts = (struct gpu_counts){0};
	assert_false(gpu_process_is_clock_suspect(&process));
	(void)state;
}

static void every_enumerator_has_a_name_of_its_own(void **state)
{
	for (int i = 0; i < FBT_GPU_STATUS_COUNT; i++) {
		assert_non_null(gpu_status_name((enum fbt_gpu_status)i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(gpu_status_name((enum fbt_gpu_status)i),
						gpu_status_name((enum fbt_gpu_status)j));
	}
	assert_string_equal(gpu_status_name((enum fbt_gpu_status)FBT_GPU_STATUS_COUNT), "unknown");
	assert_string_equal(gpu_status_name(FBT_GPU_NOT_CUDA), "not_cuda");
	assert_string_equal(gpu_status_name(FBT_GPU_NOT_INJECTED), "not_injected");
	assert_string_equal(gpu_clock_name(FBT_GPU_CLOCK_CUPTI), "cupti");
	(void)state;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_table, close_table)

/* Compares sets of time with sets of bits, for all operations, on 64 ticks. */
#define ROUNDS 20000

/* Bit i stands for the tick from i to i + 1. */
static uint64_t bits_of(const gpu_interval_vec *set)
{
	uint64_t bits = 0;

	vec_for_each (interval, set) {
		assert_true(interval->start_ns < interval->end_ns);
		for (uint64_t i = interval->start_ns; i < interval->end_ns; i++)
			bits |= UINT64_C(1) << i;
	}
	/* Intervals are ordered by start and do not touch. */
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

/* Intervals ordered by start. They may overlap, touch or be empty. */
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

/* Queries are ordered by start and may overlap. */
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

static void an_interval_out_of_order_adds_only_what_lies_after(void **state)
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
	assert_int_equal(sub_saturating(3, 9), 0);
	assert_int_equal(gpu_interval_ns(gpu_interval_clip((struct gpu_interval){1, 5},
							   (struct gpu_interval){7, 9})),
			 0);
}

static void nothing_wraps_around(void **state)
{
	gpu_interval_vec set = {0};
	size_t next = 0;

	assert_int_equal(add_saturating(UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(gpu_interval_append(&set, (struct gpu_interval){0, UINT64_MAX}), 0);
	assert_int_equal(gpu_interval_length(&set), UINT64_MAX);
	assert_int_equal(
		gpu_interval_common_with(&set, &next, (struct gpu_interval){5, UINT64_MAX}),
		UINT64_MAX - 5);
	assert_int_equal(gpu_interval_common(&set, &set), UINT64_MAX);
	vec_free(&set);
}

/* The shim counts from when it was armed. A tool that was stopped for a while arms it again. */
static void totals_are_those_of_the_window(void **state)
{
	const struct fbt_gpu_flush flushes[] = {
		{.tgid = 7, .records = 100, .ring_lost = 5, .shim_ns = 50, .clock_error_ns = 9},
		{.tgid = 7, .records = 300, .ring_lost = 20, .shim_ns = 60, .clock_error_ns = 8},
		{.tgid = 7, .records = 10, .cupti_dropped = 1, .shim_ns = 2, .clock_error_ns = 7},
		{.tgid = 7, .records = 40, .cupti_dropped = 1, .shim_ns = 3, .clock_error_ns = 7},
		{.tgid = 7, .records = 4, .shim_ns = 1, .clock_error_ns = 6},
	};
	const struct gpu_process *process;

	for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++)
		assert_int_equal(gpu_table_set_flush(*state, &flushes[i]), 0);
	process = gpu_table_find(*state, 7);
	assert_int_equal(process->flush.records, 300 + 40 + 4);
	assert_int_equal(process->flush.ring_lost, 20);
	assert_int_equal(process->flush.cupti_dropped, 1);
	assert_int_equal(process->flush.shim_ns, 60 + 3 + 1);
	assert_int_equal(process->flush.clock_error_ns, 6);
}

static void what_is_wrong_with_a_version_is_known(void **state)
{
	(void)state;
	assert_null(gpu_cupti_caution(130001, 1000000000));
	assert_non_null(strstr(gpu_cupti_caution(130001, 600000000000), "13.4 U1"));
	assert_non_null(strstr(gpu_cupti_caution(26, 600000000000), "13.4 U1"));
	assert_non_null(strstr(gpu_cupti_caution(130200, 0), "13.3"));
	assert_null(gpu_cupti_caution(130300, 0));
	assert_null(gpu_cupti_caution(130401, 600000000000));
	assert_null(gpu_cupti_caution(0, 600000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(processes_are_found_by_their_number),
		TEST(processes_are_bounded),
		TEST(totals_are_those_of_the_window),
		TEST(children_without_cuda_leave_room_for_those_with),
		TEST(a_later_state_replaces_the_earlier_one),
		TEST(names_are_shown_as_people_write_them),
		TEST(a_name_that_is_not_known_has_a_stand_in),
		TEST(a_name_that_comes_again_is_replaced),
		TEST(what_is_wrong_with_a_version_is_known),
		TEST(a_name_takes_no_room_for_those_before_it),
		TEST(bytes_of_names_are_bounded),
		TEST(devices_are_in_order_and_bounded),
		TEST(versions_have_the_names_of_cuda_releases),
		TEST(one_violation_in_a_thousand_is_no_suspicion),
		TEST(every_enumerator_has_a_name_of_its_own),
		TEST(sets_are_sets),
		TEST(intervals_are_sorted_into_a_set),
		TEST(a_set_is_asked_in_passing),
		TEST(an_interval_out_of_order_adds_only_what_lies_after),
		TEST(what_is_backwards_is_empty),
		TEST(nothing_wraps_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
