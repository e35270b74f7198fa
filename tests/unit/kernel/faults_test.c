/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* On which threads page faults are timed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "kernel/faults.h"

#define MS NS_PER_MS

static struct fbt_step step_of(uint64_t ns, uint32_t faults)
{
	return (struct fbt_step){.header.flags = FBT_STEP_CPU_KNOWN,
				 .start_ns = 5,
				 .end_ns = 5 + ns,
				 .minor_faults = faults};
}

/* With fault_ps 500 ns, and a usual step as long as this one. */
static bool matters(const struct fbt_step *step)
{
	return fault_step_matters(step, step->end_ns - step->start_ns, 500000);
}

static void faults_matter_if_they_take_a_fiftieth(void **state)
{
	struct fbt_step step = step_of(10 * MS, 400);

	assert_true(matters(&step));
	step.minor_faults = 399;
	assert_false(matters(&step));
	/* A better estimate, from faults that were timed earlier. */
	step.faults.mean_ps = 510000;
	assert_true(matters(&step));
	step.header.flags = 0;
	assert_false(matters(&step));
}

static void waits_for_a_disk_count(void **state)
{
	struct fbt_step step = step_of(10 * MS, 0);

	step.major_faults = 1;
	assert_false(matters(&step));
	step.fault_wait_ns = MS / 5;
	assert_true(matters(&step));
}

static void what_was_timed_counts_instead_of_an_estimate(void **state)
{
	struct fbt_step step = step_of(10 * MS, 4000);

	step.header.flags |= FBT_STEP_FAULTS_TIMED;
	step.faults.cpu_ns = MS / 5 - 1;
	assert_false(matters(&step));
	step.faults.asleep_ns = 1;
	assert_true(matters(&step));
}

/* One fault of a huge page takes as long as hundreds of others. */
static void few_faults_may_be_what_made_a_step_slow(void **state)
{
	struct fbt_step step = step_of(10 * MS, 25);

	assert_false(matters(&step));
	assert_true(fault_step_matters(&step, 4 * MS, 500000));
	assert_false(fault_step_matters(&step, 5 * MS, 500000));
	step.minor_faults = 24;
	assert_false(fault_step_matters(&step, 4 * MS, 500000));
	step.minor_faults = 25;
	step.header.flags |= FBT_STEP_FAULTS_TIMED;
	assert_false(fault_step_matters(&step, 4 * MS, 500000));
}

static void no_record_overflows(void **state)
{
	struct fbt_step step = step_of(10 * MS, UINT32_MAX);

	step.fault_wait_ns = step.faults.mean_ps = UINT64_MAX;
	assert_true(matters(&step));
	step.header.flags |= FBT_STEP_FAULTS_TIMED;
	step.faults.cpu_ns = step.faults.asleep_ns = UINT64_MAX;
	assert_true(matters(&step));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_matter_if_they_take_a_fiftieth),
		cmocka_unit_test(waits_for_a_disk_count),
		cmocka_unit_test(what_was_timed_counts_instead_of_an_estimate),
		cmocka_unit_test(few_faults_may_be_what_made_a_step_slow),
		cmocka_unit_test(no_record_overflows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
