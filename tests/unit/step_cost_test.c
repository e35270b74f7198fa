/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "step_cost.h"
#include "step_units.h"

#define MS	1000000ull
#define STEP_NS 20000

/* Two CPUs; the counters are the kernel side's. */
struct machine {
	struct fbt_hits hits[2];
	struct shared shared;
	struct step_cost *cost;
};

static int set_up(void **state)
{
	static struct machine machine;

	machine = (struct machine){.shared = {.hits = machine.hits, .cpu_count = 2}};
	machine.cost = step_cost__new(&machine.shared);
	*state = &machine;
	return machine.cost ? 0 : -1;
}

static int tear_down(void **state)
{
	struct machine *machine = *state;

	step_cost__free(machine->cost);
	return 0;
}

static void look(struct machine *machine, uint64_t time_ns)
{
	step_cost__look(machine->cost, kind_bit(1) | kind_bit(2), time_ns, STEP_NS);
}

static void make_steps(struct machine *machine, int cpu, uint32_t kind, uint64_t count)
{
	machine->hits[cpu].begins[kind] += count;
	machine->hits[cpu].ends[kind] += count;
}

static void hits_and_walks_are_cost(void **state)
{
	struct machine *machine = *state;

	make_steps(machine, 0, 1, 10);
	machine->hits[0].walk_ns[1] += 7;
	machine->hits[0].begins[2] = 3;
	look(machine, MS);
	assert_int_equal(step_cost__spent(machine->cost, 0, kind_bit(1)), 10 * STEP_NS + 7);
	assert_int_equal(step_cost__spent(machine->cost, 0, kind_bit(2)), 3 * STEP_NS / 2);
	assert_int_equal(step_cost__spent(machine->cost, 0, kind_bit(1) | kind_bit(2)),
			 10 * STEP_NS + 7 + 3 * STEP_NS / 2);
	assert_int_equal(step_cost__spent(machine->cost, 1, kind_bit(1)), 0);
	look(machine, MS);
	assert_int_equal(step_cost__spent(machine->cost, 0, kind_bit(1)), 0);
	assert_int_equal(step_cost__calls(&machine->shared, 2), 3);
}

static void no_function_costs_more_than_a_cpu(void **state)
{
	struct machine *machine = *state;

	make_steps(machine, 0, 1, 1000);
	look(machine, 10 * MS);
	assert_int_equal(step_cost__spent(machine->cost, 0, kind_bit(1)), 10 * MS);
}

static void the_worst_is_where_the_share_is_exceeded_most(void **state)
{
	struct machine *machine = *state;
	struct rate_cost worst;
	uint32_t cpu;

	/* More on the one, but less of its threads' time. */
	make_steps(machine, 0, 1, 100);
	machine->hits[0].own_ns = 100 * MS;
	make_steps(machine, 1, 1, 50);
	machine->hits[1].own_ns = 2 * MS;
	look(machine, 100 * MS);
	worst = step_cost__worst(machine->cost, kind_bit(1), 0.05, &cpu);
	assert_int_equal(cpu, 1);
	assert_int_equal(worst.spent_ns, 50 * STEP_NS);
	assert_int_equal(worst.own_ns, 2 * MS);
	/* Below it everywhere: where least is left. */
	worst = step_cost__worst(machine->cost, kind_bit(2), 0.05, &cpu);
	assert_int_equal(cpu, 1);
	assert_int_equal(worst.spent_ns, 0);
}

static uint64_t own_ns(const struct machine *machine)
{
	uint32_t cpu;

	/* All of them: that of the other CPU is 0, and so is the cost. */
	return step_cost__worst(machine->cost, kind_bit(1), -1, &cpu).own_ns;
}

static void threads_have_no_more_time_than_a_cpu(void **state)
{
	struct machine *machine = *state;

	machine->hits[0].own_ns = 500 * MS;
	look(machine, 10 * MS);
	assert_int_equal(own_ns(machine), 10 * MS);
	look(machine, 10 * MS);
	assert_int_equal(own_ns(machine), 0);
}

/* A burst each 100 ms: its first begin says that the thread was there all the time. */
static void time_between_two_begins_counts_for_the_thread(void **state)
{
	struct machine *machine = *state;
	uint64_t sum = 0;

	for (int burst = 0; burst < 5; burst++) {
		for (int i = 0; i < 9; i++) {
			look(machine, 10 * MS);
			assert_int_equal(own_ns(machine), 0);
		}
		machine->hits[0].own_ns += 100 * MS;
		look(machine, 10 * MS);
		assert_int_equal(own_ns(machine), 100 * MS);
		sum += own_ns(machine);
	}
	assert_int_equal(sum, 500 * MS);
	/* But not for ever, and not where the probes were off. */
	look(machine, 100000 * MS);
	machine->hits[0].own_ns += 100000 * MS;
	look(machine, 10 * MS);
	assert_int_equal(own_ns(machine), 1010 * MS);
	look(machine, 500 * MS);
	step_cost__forget_time(machine->cost);
	machine->hits[0].own_ns += 500 * MS;
	look(machine, 10 * MS);
	assert_int_equal(own_ns(machine), 10 * MS);
}

static void of_an_unknown_thread_all_time_counts(void **state)
{
	struct machine *machine = *state;

	machine->hits[0].untraced = 1;
	look(machine, 10 * MS);
	assert_int_equal(own_ns(machine), 10 * MS);
	look(machine, 10 * MS);
	assert_int_equal(own_ns(machine), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hits_and_walks_are_cost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_function_costs_more_than_a_cpu, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_worst_is_where_the_share_is_exceeded_most,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_have_no_more_time_than_a_cpu, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(time_between_two_begins_counts_for_the_thread,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_an_unknown_thread_all_time_counts, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
