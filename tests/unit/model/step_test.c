/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "model/step.h"

static void step_compute_never_falls_below_zero(void **state)
{
	struct step step = {.record = {.thread_ns = 10, .sums[FBT_READ] = {.ns = 11}}};

	assert_int_equal(step_compute_ns(&step), 0);
}

static void step_sums_saturate(void **state)
{
	struct step step = {0};

	step.record.sums[0] = (struct fbt_sum){UINT64_MAX, UINT64_MAX, UINT64_MAX, 0};
	step.record.sums[1] = (struct fbt_sum){1, 1, 1, 0};
	assert_true(step_syscall_ns(&step) == UINT64_MAX);
	assert_true(step_calls(&step) == UINT64_MAX);
	assert_true(step_errors(&step) == UINT64_MAX);
}

static void step_wall_is_zero_when_its_end_lies_before_its_start(void **state)
{
	struct step step = {.record = {.start_ns = 10, .end_ns = 9}};

	assert_int_equal(step_wall_ns(&step), 0);
}

static struct step make_gap_step(uint64_t gap_ns, uint64_t syscall_ns)
{
	return (struct step){.record = {.tgid = 7,
					.tid = 8,
					.start_ns = 1000,
					.gap_ns = gap_ns,
					.gap_syscall_ns = syscall_ns}};
}

static void a_gap_is_known_if_its_record_came(void **state)
{
	struct fbt_gap gap = {.tgid = 7, .tid = 8, .start_ns = 1000, .cpu_ns = 100, .delay_ns = 50};
	struct step step = make_gap_step(900, 200);

	step_join_gap(&step, &gap);
	assert_true(step.gap.known);
	assert_int_equal(step.gap.cpu_ns, 100);
	assert_int_equal(step.gap.delay_ns, 50);
	/* All time in calls may have been asleep. */
	assert_int_equal(step.gap.off_ns, 900 - 100 - 50 - 200);
	/* A record is about one step. */
	step = make_gap_step(900, 200);
	step_join_gap(&step, &gap);
	assert_false(step.gap.known);
}

static void a_gap_of_another_step_is_dropped(void **state)
{
	struct fbt_gap gap = {.tgid = 7, .tid = 9, .start_ns = 1000, .cpu_ns = 100};
	struct step step = make_gap_step(900, 0);

	step_join_gap(&step, &gap);
	assert_false(step.gap.known);
	gap = (struct fbt_gap){.tgid = 7, .tid = 8, .start_ns = 1000, .cpu_ns = 100};
	step.record.header.flags = FBT_STEP_NO_GAP;
	step_join_gap(&step, &gap);
	assert_false(step.gap.known);
	assert_int_equal(gap.start_ns, 0);
}

static void the_parts_of_a_gap_fit_into_it(void **state)
{
	struct fbt_gap gap = {
		.tgid = 7, .tid = 8, .start_ns = 1000, .cpu_ns = INT64_MAX, .delay_ns = UINT64_MAX};
	struct step step = make_gap_step(900, 0);

	step_join_gap(&step, &gap);
	assert_int_equal(step.gap.cpu_ns, 900);
	assert_int_equal(step.gap.delay_ns + step.gap.off_ns, 0);
	/* Where calls were not traced, sleep may be in one. */
	step = make_gap_step(900, 0);
	step.record.header.flags = FBT_STEP_CALLS_UNKNOWN;
	gap = (struct fbt_gap){.tgid = 7, .tid = 8, .start_ns = 1000, .cpu_ns = 100};
	step_join_gap(&step, &gap);
	assert_int_equal(step.gap.off_ns, 0);
}

static uint64_t sum_parts(const struct step_parts *parts)
{
	uint64_t sum = 0;

	for (int i = 0; i < STEP_PARTS; i++)
		sum += parts->ns[i];
	return sum;
}

/*
 * A step of 1,000 ns with 300 in calls. In calls it waits 100 for a CPU and sleeps 150; outside of
 * calls it waits 50 for a CPU.
 */
static struct step known_step(void)
{
	return (struct step){.record = {
				     .header.flags = FBT_STEP_CPU_KNOWN,
				     .thread_ns = 1000,
				     .run_delay_ns = 50,
				     .cpu_ns = 550,
				     .asleep_ns = 150,
				     .fault_wait_ns = 120,
				     .call_delay_ns = {[FBT_FUTEX] = 100},
				     .sums = {[FBT_FUTEX] = {.ns = 260}, [FBT_READ] = {.ns = 40}},
			     }};
}

static void less_than_no_time_on_a_cpu_is_none_of_a_gap(void **state)
{
	struct fbt_gap gap = {.tgid = 7, .tid = 8, .start_ns = 1000, .cpu_ns = (uint64_t)-5};
	struct step step = make_gap_step(900, 200);

	step_join_gap(&step, &gap);
	assert_true(step.gap.known);
	assert_int_equal(step.gap.cpu_ns, 0);
	assert_int_equal(step.gap.off_ns, 900 - 200);
}

static void less_than_no_time_on_a_cpu_is_none(void **state)
{
	struct step step = known_step();
	struct step_parts parts;

	step.record.cpu_ns = (uint64_t)-5;
	step_split(&step, &parts);
	assert_int_equal(parts.ns[STEP_OWN], 0);
	assert_int_equal(parts.ns[STEP_OFF_CPU], 530);
	assert_int_equal(sum_parts(&parts), 1000);
}

static void parts_of_a_step_are_what_was_measured(void **state)
{
	struct step step = known_step();
	struct step_parts parts;

	step_split(&step, &parts);
	assert_true(parts.known);
	assert_int_equal(parts.ns[STEP_OWN], 500);
	assert_int_equal(parts.ns[STEP_CPU_WAIT], 150);
	assert_int_equal(parts.ns[STEP_CALLS + FBT_FUTEX], 160);
	assert_int_equal(parts.ns[STEP_CALLS + FBT_READ], 40);
	assert_int_equal(parts.ns[STEP_DISK_WAIT], 120);
	assert_int_equal(parts.ns[STEP_OFF_CPU], 30);
	assert_true(parts.stops_known && !parts.ns[STEP_STOPPED]);
	step.stop.header.type = FBT_EVENT_STOP;
	step.stop.stopped_ns = 20;
	step_split(&step, &parts);
	assert_true(parts.stops_known);
	assert_int_equal(parts.ns[STEP_STOPPED], 20);
	assert_int_equal(parts.ns[STEP_OFF_CPU], 10);
	assert_int_equal(parts.ns[STEP_DISK_WAIT], 120);
	assert_int_equal(sum_parts(&parts), 1000);
	/* The end of the stop is unknown. The stop is at most the time that is left. */
	step.stop.stopped_ns = 2000;
	step_split(&step, &parts);
	assert_int_equal(parts.ns[STEP_STOPPED], 150);
	assert_int_equal(parts.ns[STEP_OFF_CPU], 0);
	/* The stop is that of another thread, which the step waited for in a call. */
	step.stop.tid = 9;
	step_split(&step, &parts);
	assert_int_equal(parts.ns[STEP_STOPPED], 0);
	/* In so long a step there may have been a stop too short to be noticed. */
	step.record.thread_ns += 100000;
	step_split(&step, &parts);
	assert_false(parts.stops_known);
	step.stop.tid = 0;
	step_split(&step, &parts);
	assert_true(parts.stops_known);
	assert_int_equal(sum_parts(&parts), 101000);
}

/*
 * CPU time in page faults is not own code, and sleep in them is not unexplained time off the CPU.
 */
static void timed_page_faults_are_a_part(void **state)
{
	struct step step = known_step();
	struct step_parts parts;

	step_split(&step, &parts);
	assert_false(parts.faults_known);
	assert_int_equal(parts.ns[STEP_FAULTS], 0);
	step.record.faults.cpu_ns = 310;
	step.record.faults.asleep_ns = 20;
	step_split(&step, &parts);
	assert_int_equal(parts.ns[STEP_OWN], 500); /* only some of the faults were timed */
	step.record.header.flags |= FBT_STEP_FAULTS_TIMED;
	step_split(&step, &parts);
	assert_true(parts.faults_known);
	assert_int_equal(parts.ns[STEP_OWN], 190);
	assert_int_equal(parts.ns[STEP_FAULTS], 330);
	assert_int_equal(parts.ns[STEP_DISK_WAIT], 120);
	assert_int_equal(parts.ns[STEP_OFF_CPU], 10);
	assert_int_equal(sum_parts(&parts), 1000);
	assert_string_equal(step_part_name(STEP_FAULTS, true), "faults");
	assert_string_equal(step_part_name(STEP_DISK_WAIT, true), "disk_wait");
}

static void without_calls_a_step_is_on_a_cpu_waits_for_one_or_sleeps(void **state)
{
	struct step step = {.record = {.header.flags = FBT_STEP_CPU_KNOWN | FBT_STEP_CALLS_UNKNOWN,
				       .thread_ns = 1000,
				       .cpu_ns = 600,
				       .run_delay_ns = 150,
				       .fault_wait_ns = 90}};
	struct step_parts parts;

	step_split(&step, &parts);
	assert_true(parts.known);
	assert_int_equal(parts.ns[STEP_OWN], 600);
	assert_int_equal(parts.ns[STEP_CPU_WAIT], 150);
	assert_int_equal(parts.ns[STEP_OFF_CPU], 250);
	assert_int_equal(sum_parts(&parts), 1000);
	for (int i = 0; i < STEP_PARTS; i++)
		assert_true(!parts.ns[i] || step_part_name((enum step_part)i, false));
	assert_null(step_part_name(STEP_FAULTS, false));
	assert_null(step_part_name(STEP_CALLS + FBT_FUTEX, false));
}

static void awaited_time_is_a_part(void **state)
{
	struct step step = known_step();
	struct step_parts parts;

	step.record.thread_ns = 1700;
	step.record.await_ns = 700;
	step_split(&step, &parts);
	assert_int_equal(parts.ns[STEP_AWAIT], 700);
	assert_int_equal(parts.ns[STEP_OWN], 500);
	assert_int_equal(parts.ns[STEP_OFF_CPU], 30);
	assert_int_equal(sum_parts(&parts), 1700);
	assert_string_equal(step_part_name(STEP_AWAIT, true), "await");
	assert_string_equal(step_part_name(STEP_AWAIT, false), "await");
	step.record.header.flags = 0;
	step_split(&step, &parts);
	assert_int_equal(parts.ns[STEP_AWAIT], 700);
	assert_int_equal(sum_parts(&parts), 1700);
}

static void what_was_not_measured_is_own(void **state)
{
	struct step step = known_step();
	struct step_parts parts;

	step.record.header.flags = 0;
	step_split(&step, &parts);
	assert_false(parts.known);
	assert_int_equal(parts.ns[STEP_OWN], 650);
	assert_int_equal(parts.ns[STEP_CPU_WAIT], 150);
	step.record.header.flags = FBT_STEP_SCHED_UNKNOWN | FBT_STEP_CPU_KNOWN;
	step_split(&step, &parts);
	assert_false(parts.known);
	assert_int_equal(parts.ns[STEP_OWN], 700);
	assert_int_equal(parts.ns[STEP_CALLS + FBT_FUTEX], 260);
}

/* No record may give parts that are negative or do not sum to the step. */
static void parts_sum_to_the_step_whatever_is_in_it(void **state)
{
	static const __u64 values[] = {0, 1, 999, 1000, UINT64_MAX};
	struct step step = known_step();
	struct step_parts parts;
	__u64 *fields[] = {&step.record.cpu_ns,
			   &step.record.asleep_ns,
			   &step.record.fault_wait_ns,
			   &step.record.faults.cpu_ns,
			   &step.record.run_delay_ns,
			   &step.record.await_ns,
			   &step.record.sums[FBT_FUTEX].ns,
			   &step.record.call_delay_ns[FBT_FUTEX]};
	size_t choices = 1;

	step.record.header.flags |= FBT_STEP_FAULTS_TIMED;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		choices *= 5;
	for (size_t choice = 0; choice < choices; choice++) {
		for (size_t i = 0, rest = choice; i < sizeof(fields) / sizeof(fields[0]); i++) {
			*fields[i] = values[rest % 5];
			rest /= 5;
		}
		step_split(&step, &parts);
		assert_int_equal(sum_parts(&parts), 1000);
		for (int i = 0; i < STEP_PARTS; i++)
			assert_true(parts.ns[i] <= 1000);
	}
}

static void breakdown_sum_saturates(void **state)
{
	struct breakdown breakdown = {.category_us = {UINT64_MAX, 1}, .total_us = 5};

	assert_true(breakdown_syscall_us(&breakdown) == UINT64_MAX);
	assert_int_equal(breakdown_compute_us(&breakdown), 0);
}

static void breakdown_overhead_of_nothing_is_zero(void **state)
{
	struct breakdown breakdown = {.category_us = {5}};

	assert_true(breakdown_overhead_percent(&breakdown) == 0.0);
}

static void breakdown_overhead_may_exceed_100(void **state)
{
	struct breakdown breakdown = {.category_us = {300}, .total_us = 200};

	assert_true(breakdown_overhead_percent(&breakdown) == 150.0);
}

static void breakdown_has_the_figures_of_the_seed(void **state)
{
	struct breakdown breakdown = {.category_us = {100, 50, 30, 20, 60, 40}, .total_us = 1000};

	assert_int_equal(breakdown_syscall_us(&breakdown), 300);
	assert_int_equal(breakdown_compute_us(&breakdown), 700);
	assert_true(breakdown_overhead_percent(&breakdown) == 30.0);
	assert_string_equal(breakdown_dominant(&breakdown), "mmap");
}

static void breakdown_overhead_tenths_are_those_of_the_seeds_text(void **state)
{
	struct breakdown breakdown = {.category_us = {267}, .total_us = 400};

	assert_true(breakdown_overhead_tenths(&breakdown) == 66.8);
	breakdown = (struct breakdown){.category_us = {1}, .total_us = 400};
	assert_true(breakdown_overhead_tenths(&breakdown) == 0.2);
	breakdown = (struct breakdown){.category_us = {UINT64_MAX}, .total_us = 1};
	assert_true(breakdown_overhead_tenths(&breakdown) > 1e21);
}

static void breakdown_dominant_of_nothing_is_none(void **state)
{
	struct breakdown breakdown = {.total_us = 1000};

	assert_string_equal(breakdown_dominant(&breakdown), "none");
}

static void breakdown_dominant_is_the_last_of_equals(void **state)
{
	struct breakdown breakdown = {.category_us = {5, 5, 5, 0, 1, 0}};

	assert_string_equal(breakdown_dominant(&breakdown), "ioctl");
	breakdown.category_us[FBT_OTHER] = 5;
	assert_string_equal(breakdown_dominant(&breakdown), "other");
}

static void step_total_is_the_time_of_its_threads(void **state)
{
	struct step step = {.record = {.start_ns = 100, .end_ns = 200, .thread_ns = 300}};

	assert_int_equal(step_total_ns(&step), 300);
	assert_int_equal(step_wall_ns(&step), 100);
}

static void step_adds_up_its_categories(void **state)
{
	struct step step = {.record.thread_ns = 100};

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		step.record.sums[i] = (struct fbt_sum){.ns = 10, .calls = 2, .errors = 1};
	assert_int_equal(step_syscall_ns(&step), 60);
	assert_int_equal(step_compute_ns(&step), 40);
	assert_int_equal(step_calls(&step), 12);
	assert_int_equal(step_errors(&step), 6);
}

static void step_breakdown_rounds_each_figure_down_once(void **state)
{
	struct step step = {.record.thread_ns = 6 * 1999};
	struct breakdown breakdown;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		step.record.sums[i].ns = 1999;
	step_breakdown(&step, &breakdown);
	assert_int_equal(breakdown.category_us[FBT_OTHER], 1);
	assert_int_equal(breakdown.total_us, 11);
	assert_int_equal(breakdown_syscall_us(&breakdown), 6);
}

static void step_ends_have_names(void **state)
{
	assert_string_equal(step_end_name(FBT_END_RETURN), "return");
	assert_string_equal(step_end_name(FBT_END_UNWOUND), "unwound");
	assert_string_equal(step_end_name(FBT_END_TRUNCATED), "truncated");
	assert_string_equal(step_end_name(FBT_END_EXITED), "exited");
	assert_string_equal(step_end_name((enum fbt_step_end)9), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_compute_never_falls_below_zero),
		cmocka_unit_test(step_sums_saturate),
		cmocka_unit_test(step_wall_is_zero_when_its_end_lies_before_its_start),
		cmocka_unit_test(a_gap_is_known_if_its_record_came),
		cmocka_unit_test(a_gap_of_another_step_is_dropped),
		cmocka_unit_test(the_parts_of_a_gap_fit_into_it),
		cmocka_unit_test(less_than_no_time_on_a_cpu_is_none_of_a_gap),
		cmocka_unit_test(parts_of_a_step_are_what_was_measured),
		cmocka_unit_test(less_than_no_time_on_a_cpu_is_none),
		cmocka_unit_test(timed_page_faults_are_a_part),
		cmocka_unit_test(without_calls_a_step_is_on_a_cpu_waits_for_one_or_sleeps),
		cmocka_unit_test(awaited_time_is_a_part),
		cmocka_unit_test(what_was_not_measured_is_own),
		cmocka_unit_test(parts_sum_to_the_step_whatever_is_in_it),
		cmocka_unit_test(breakdown_sum_saturates),
		cmocka_unit_test(breakdown_overhead_of_nothing_is_zero),
		cmocka_unit_test(breakdown_overhead_may_exceed_100),
		cmocka_unit_test(breakdown_has_the_figures_of_the_seed),
		cmocka_unit_test(breakdown_overhead_tenths_are_those_of_the_seeds_text),
		cmocka_unit_test(breakdown_dominant_of_nothing_is_none),
		cmocka_unit_test(breakdown_dominant_is_the_last_of_equals),
		cmocka_unit_test(step_total_is_the_time_of_its_threads),
		cmocka_unit_test(step_adds_up_its_categories),
		cmocka_unit_test(step_breakdown_rounds_each_figure_down_once),
		cmocka_unit_test(step_ends_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
