/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "targets/step_guard.h"
#include "targets/steps_found.h"

#define MS	1000000ull
#define STEP_NS 20000

/* Two CPUs with the kernel side's counters. */
struct machine {
	struct fbt_hits hits[2];
	struct fbt_control control;
	struct shared shared;
	struct options options;
	struct live live;
	struct step_guard *guard;
};

static int set_up(void **state)
{
	static struct machine machine;

	machine = (struct machine){
		.shared = {.hits = machine.hits, .control = &machine.control, .cpu_count = 2},
		.options.windows.rate_guard_percent = 25,
		.live.options = &machine.options,
	};
	machine.guard = step_guard__new(&machine.live, &machine.shared, true);
	*state = &machine;
	return machine.guard ? 0 : -1;
}

static int tear_down(void **state)
{
	struct machine *machine = *state;

	step_guard__free(machine->guard);
	return 0;
}

static void look(struct machine *machine, uint64_t time_ns)
{
	step_guard__look(machine->guard, kind_bit(1) | kind_bit(2), time_ns,
			 &(struct fbt_cost){.step_ns = STEP_NS, .site_ns = STEP_NS / 4});
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
	assert_int_equal(step_guard__spent(machine->guard, 0, kind_bit(1)), 10 * STEP_NS + 7);
	assert_int_equal(step_guard__spent(machine->guard, 0, kind_bit(2)), 3 * STEP_NS / 2);
	assert_int_equal(step_guard__spent(machine->guard, 0, kind_bit(1) | kind_bit(2)),
			 10 * STEP_NS + 7 + 3 * STEP_NS / 2);
	assert_int_equal(step_guard__spent(machine->guard, 1, kind_bit(1)), 0);
	look(machine, MS);
	assert_int_equal(step_guard__spent(machine->guard, 0, kind_bit(1)), 0);
	assert_int_equal(step_guard__calls(machine->guard, 2), 3);
}

static void no_function_costs_more_than_a_cpu(void **state)
{
	struct machine *machine = *state;

	make_steps(machine, 0, 1, 1000);
	look(machine, 10 * MS);
	assert_int_equal(step_guard__spent(machine->guard, 0, kind_bit(1)), 10 * MS);
}

static void the_worst_is_where_most_is_spent(void **state)
{
	struct machine *machine = *state;
	struct rate_cost worst;

	make_steps(machine, 0, 1, 50);
	make_steps(machine, 0, 2, 100);
	make_steps(machine, 1, 1, 60);
	make_steps(machine, 1, 2, 7);
	look(machine, 100 * MS);
	worst = step_guard__worst(machine->guard, kind_bit(1), kind_bit(2));
	assert_int_equal(worst.spent_ns, 60 * STEP_NS);
	assert_int_equal(worst.beside_ns, 7 * STEP_NS);
	worst = step_guard__worst(machine->guard, kind_bit(1) | kind_bit(2), 0);
	assert_int_equal(worst.spent_ns, 150 * STEP_NS);
	assert_int_equal(worst.excess_ns, 0);
}

static void excess_counts_wherever_it_is(void **state)
{
	struct machine *machine = *state;

	machine->hits[0].excess_ns[1] = 3;
	machine->hits[1].excess_ns[1] = 4;
	machine->hits[1].excess_ns[2] = 5;
	look(machine, MS);
	assert_int_equal(step_guard__worst(machine->guard, kind_bit(1), 0).excess_ns, 7);
	assert_int_equal(step_guard__worst(machine->guard, kind_bit(1) | kind_bit(2), 0).excess_ns,
			 12);
	machine->hits[1].excess_ns[1] += 2;
	look(machine, MS);
	assert_int_equal(step_guard__worst(machine->guard, kind_bit(1), 0).excess_ns, 2);
	look(machine, MS);
	assert_int_equal(step_guard__worst(machine->guard, kind_bit(1), 0).excess_ns, 0);
}

/* 40 % of the time, plus the 25 % that may be spent. */
static void the_share_is_that_of_the_threads_with_excess(void **state)
{
	struct machine *machine = *state;

	look(machine, MS);
	assert_true(step_guard__over_share(machine->guard) <= 0);
	machine->hits[0].excess_ns[1] = 30;
	machine->hits[1].excess_ns[2] = 10;
	machine->hits[0].excess_own_ns = 40;
	machine->hits[1].excess_own_ns = 60;
	look(machine, MS);
	assert_in_range((int)(1000 * step_guard__over_share(machine->guard)), 649, 651);
	/* The cost of a step is an upper bound, so the sum may exceed the time there is. */
	machine->hits[0].excess_ns[1] += 500;
	machine->hits[0].excess_own_ns += 100;
	look(machine, MS);
	assert_true(step_guard__over_share(machine->guard) >= 1);
	assert_true(step_guard__over_share(machine->guard) <= 1);
}

static void threads_are_charged_once_that_is_said(void **state)
{
	struct machine *machine = *state;

	assert_int_equal(machine->control.charge_ns, 0);
	step_guard__charge(machine->guard, &(struct fbt_cost){.step_ns = 77, .site_ns = 7});
	assert_int_equal(machine->control.charge_ns, 77);
	assert_int_equal(machine->control.charge_part, FBT_PART_ONE / 4);
	assert_int_equal(machine->control.debt_max_ns, RATE_BURST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hits_and_walks_are_cost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_function_costs_more_than_a_cpu, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_worst_is_where_most_is_spent, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(excess_counts_wherever_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_share_is_that_of_the_threads_with_excess,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_are_charged_once_that_is_said, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
