/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

#include "gpu_step_fixture.h"
#include "report/cost.h"

static int setup(void **state)
{
	*state = new_fixture(REPORT_NONE);
	return 0;
}

static int teardown(void **state)
{
	free_fixture(*state);
	return 0;
}

static void cost_without_a_table_uses_the_calls_of_steps(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 100 * MS);
	struct tally tally = {0};
	struct cost cost;

	fixture->window->cost.call_ps = 500000;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	cost_sum(&tally, fixture->window, &cost);
	assert_int_equal(cost.calls, 2);
	assert_int_equal(cost.call_ns, 1000);
	assert_int_equal(cost.traced_ns, 10000 * MS);
	assert_true(cost.step_percent > 0.00099 && cost.step_percent < 0.00101);
	tally_clear(&tally);
}

/* A capture may hold any figures. A figure that exceeds an integer becomes the largest one. */
static void impossible_costs_saturate(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 100 * MS);
	struct fbt_sampling *sampling = &fixture->window->sampling[1];
	struct tally tally = {0};
	struct cost cost;

	fixture->window->cost.call_ps = UINT64_MAX;
	fixture->window->cost.step_ns = UINT64_MAX;
	step.record.sums[0].calls = UINT64_MAX;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	cost_sum(&tally, fixture->window, &cost);
	assert_int_equal(cost.call_ns, UINT64_MAX);
	assert_int_equal(cost.step_ns, UINT64_MAX);
	tally_clear(&tally);
	*sampling = (struct fbt_sampling){.kind = 1, .calls = UINT64_MAX, .watched_ns = 1};
	assert_int_equal(window__sampled_calls_per_s(fixture->window, 1), UINT64_MAX);
}

static void intervals_cost_no_probes(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 100 * MS);
	struct tally tally = {0};
	struct cost cost;

	step.record.kind = 0;
	fixture->window->cost.step_ns = 1000;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	cost_sum(&tally, fixture->window, &cost);
	assert_int_equal(cost.step_ns, 0);
	tally_clear(&tally);
}

static struct gpu_counts *add_gpu(struct fixture *fixture)
{
	struct fbt_gpu_state armed = {.tgid = 42, .status = FBT_GPU_ARMED};

	assert_int_equal(gpu_table_set_state(&fixture->window->gpus, &armed, "", ""), 0);
	return &fixture->window->gpus.processes.items[0]->counts;
}

/* Half of what the steps launched, while the GPU was idle: what hides behind its work is free. */
static void gpu_records_cost_where_the_gpu_is_idle(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 100 * MS);
	struct gpu_counts *counts = add_gpu(fixture);
	struct tally tally = {0};
	struct cost cost;

	*counts = (struct gpu_counts){
		.kernels = 900, .memcpys = 100, .graph_nodes = 500, .apis = 600, .outside = 500};
	step.gpu = make_gpu();
	step.gpu->complete = true;
	step.gpu->all.busy_ns = 75 * MS;
	step.gpu->all.idle_ns = 25 * MS;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	cost_sum(&tally, fixture->window, &cost);
	assert_int_equal(cost.gpu_calls, 600);
	assert_int_equal(cost.gpu_nodes, 500);
	assert_true(cost.gpu_idle > 0.249 && cost.gpu_idle < 0.251);
	assert_int_equal(cost.gpu_ns, (600 * GPU_CALL_COST_NS + 500 * GPU_NODE_COST_NS) / 4);
	assert_true(cost.step_percent > (double)cost.gpu_ns / 2 / (100 * MS) * 100 - 0.01);
	assert_true(cost.step_percent < (double)cost.gpu_ns / 2 / (100 * MS) * 100 + 0.01);
	step_gpu_free(step.gpu);
	tally_clear(&tally);
}

/* Without a step with GPU records nothing says that the GPU was busy. */
static void the_gpu_is_taken_as_idle_if_that_is_not_known(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_counts *counts = add_gpu(fixture);
	struct tally tally = {0};
	struct cost cost;

	*counts = (struct gpu_counts){.apis = 10, .kernels = 10, .outside = 10};
	cost_sum(&tally, fixture->window, &cost);
	assert_int_equal(cost.gpu_ns, 10 * GPU_CALL_COST_NS);
	assert_true(cost.step_percent == 0);
	counts->apis = counts->graph_nodes = UINT64_MAX;
	cost_sum(&tally, fixture->window, &cost);
	assert_int_equal(cost.gpu_ns, UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cost_without_a_table_uses_the_calls_of_steps),
		TEST(impossible_costs_saturate),
		TEST(intervals_cost_no_probes),
		TEST(gpu_records_cost_where_the_gpu_is_idle),
		TEST(the_gpu_is_taken_as_idle_if_that_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
