/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu_step_fixture.h"
#include "tally/tally.h"

struct fixture {
	struct gpu_tally tally;
	struct step step;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->step.number = 1;
	fixture->step.record.kind = 1;
	fixture->step.record.end_ns = GPU_STEP_NS;
	fixture->step.gpu = make_gpu();
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	gpu_tally_clear(&fixture->tally);
	step_gpu_free(fixture->step.gpu);
	free(fixture);
	return 0;
}

static const struct gpu_tally_kind *add(struct fixture *fixture)
{
	assert_int_equal(gpu_tally_add(&fixture->tally, &fixture->step), 0);
	fixture->step.number++;
	return fixture->tally.kinds[1];
}

static void a_step_without_gpu_figures_is_left_alone(void **state)
{
	struct fixture *fixture = *state;
	struct step step = fixture->step;

	step.gpu = NULL;
	assert_int_equal(gpu_tally_add(&fixture->tally, &step), 0);
	assert_null(fixture->tally.kinds[1]);
}

static void times_and_counts_are_summed_up(void **state)
{
	struct fixture *fixture = *state;
	const struct gpu_tally_kind *kind;

	add(fixture);
	kind = add(fixture);
	assert_int_equal(kind->steps, 2);
	assert_int_equal(kind->total_ns, 2 * GPU_STEP_NS);
	assert_int_equal(kind->sum.busy_ns + kind->sum.idle_ns, kind->total_ns);
	assert_int_equal(kind->sum.kernels, 84);
	assert_int_equal(kind->sync_tail_ns, 100000);
	assert_int_equal(kind->calls_known_steps, 2);
	assert_int_equal(kind->exposed_syscall_ns, 2200000);
	assert_int_equal(kind->joined, 88);
	assert_int_equal(kind->bound[GPU_BOUND_WAIT], 2);
	assert_int_equal(kind->sealed[GPU_SEAL_WATERMARK], 2);
	assert_int_equal(kind->complete, 2);
	assert_in_range(stats__percentile(kind->busy, 0.5), 4396000, 4406000);
}

static void calls_that_are_not_known_count_for_nothing(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.gpu->calls_known = false;
	assert_int_equal(add(fixture)->calls_known_steps, 0);
	assert_int_equal(fixture->tally.kinds[1]->exposed_syscall_ns, 0);
	assert_int_equal(fixture->tally.kinds[1]->gpu_only_ns, 0);
	assert_int_equal(fixture->tally.kinds[1]->gpu_host_ns, 0);
}

static void incomplete_steps_count_for_no_sum(void **state)
{
	struct fixture *fixture = *state;
	const struct gpu_tally_kind *kind;
	struct gpu_figures mean;

	fixture->step.gpu->complete = false;
	kind = add(fixture);
	gpu_tally_mean(kind, &mean);
	assert_int_equal(mean.busy_ns, 0);
	fixture->step.gpu->complete = true;
	kind = add(fixture);
	assert_int_equal(kind->steps, 2);
	assert_int_equal(kind->complete, 1);
	assert_int_equal(kind->total_ns, GPU_STEP_NS);
	assert_int_equal(kind->sum.busy_ns + kind->sum.idle_ns, GPU_STEP_NS);
	assert_int_equal(kind->sum.kernels, 42);
	assert_int_equal(kind->bound[GPU_BOUND_WAIT], 1);
	assert_int_equal(stats__count(kind->busy), 1);
	assert_int_equal(kind->joined, 88);
	gpu_tally_mean(kind, &mean);
	assert_int_equal(mean.busy_ns + mean.idle_ns, GPU_STEP_NS);
}

static void the_mean_step_names_the_longest_calls_of_all(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_figures *all = &fixture->step.gpu->all, mean;

	add(fixture);
	all->wait_calls[0] = (struct gpu_wait_call){NR_READ, false, 3300000};
	gpu_tally_mean(add(fixture), &mean);
	assert_int_equal(mean.busy_ns, 4400999);
	assert_int_equal(mean.wait_calls[0].nr, NR_READ);
	assert_false(mean.wait_calls[0].blocked);
	assert_int_equal(mean.wait_calls[0].ns, 1650000);
	assert_int_equal(mean.wait_calls[1].nr, NR_FUTEX);
	assert_true(mean.wait_calls[1].blocked);
	assert_int_equal(mean.wait_calls[1].ns, 550000);
	assert_int_equal(mean.wait_calls[2].ns, 0);
}

static void steps_without_launches_have_no_medians(void **state)
{
	struct fixture *fixture = *state;

	add(fixture);
	fixture->step.gpu->all.launches = 0;
	assert_int_equal(stats__count(add(fixture)->work), 1);
}

static void the_slowest_steps_come_slowest_first(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t lengths[] = {3, 9, 1, 7, 5};
	const struct gpu_tally_kind *kind = NULL;

	for (int i = 0; i < 5; i++) {
		fixture->step.record.end_ns = lengths[i];
		kind = add(fixture);
	}
	assert_int_equal(kind->slowest[0].number, 2);
	assert_int_equal(kind->slowest[1].number, 4);
	assert_int_equal(kind->slowest[2].number, 5);
}

static void the_verdict_is_that_of_the_most_steps(void **state)
{
	struct fixture *fixture = *state;
	const struct gpu_tally_kind *kind;

	fixture->step.gpu->bound = GPU_BOUND_UNKNOWN;
	add(fixture);
	kind = add(fixture);
	assert_int_equal(gpu_tally_bound(kind), GPU_BOUND_UNKNOWN);
	fixture->step.gpu->bound = GPU_BOUND_LAUNCH;
	add(fixture);
	assert_int_equal(gpu_tally_bound(kind), GPU_BOUND_LAUNCH);
}

/* A damaged capture may hold such figures. */
static void sums_saturate(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.gpu->all.idle_ns = UINT64_MAX;
	fixture->step.gpu->all.wait_calls[0].nr = FBT_NR_COUNT;
	add(fixture);
	assert_int_equal(add(fixture)->sum.idle_ns, UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_step_without_gpu_figures_is_left_alone),
		TEST(times_and_counts_are_summed_up),
		TEST(calls_that_are_not_known_count_for_nothing),
		TEST(incomplete_steps_count_for_no_sum),
		TEST(the_mean_step_names_the_longest_calls_of_all),
		TEST(steps_without_launches_have_no_medians),
		TEST(the_slowest_steps_come_slowest_first),
		TEST(the_verdict_is_that_of_the_most_steps),
		TEST(sums_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
