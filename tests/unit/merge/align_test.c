/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "merge/align.h"

/* Two ranks, and the clock of the second one. */
struct world {
	uint64_t seed;
	collective_vec a, b;
	int64_t offset_ns; /* of a's clock, less b's, when a's is 0 */
	double drift;	   /* b's clock is slow by that */
	int64_t step_ns;   /* between two collectives, and up to that much more */
	int64_t jitter_ns;
	int64_t wake_ns; /* a rank goes on up to that late */
	uint32_t lost_percent;
	int64_t wrong_ns; /* times of b are wrong by up to that */
	uint32_t group;
};

static int64_t random_below(struct world *world, int64_t limit)
{
	world->seed = world->seed * 6364136223846793005ull + 1442695040888963407ull;
	return limit > 0 ? (int64_t)((world->seed >> 33) % (uint64_t)limit) : 0;
}

static int64_t to_b(const struct world *world, int64_t ns)
{
	return llround((double)(ns - world->offset_ns) / (1 + world->drift));
}

static void add(struct world *world, collective_vec *to, int64_t begin_ns, int64_t end_ns,
		uint32_t name)
{
	if (random_below(world, 100) < world->lost_percent)
		return;
	assert_int_equal(vec_push(to, ((struct collective){.begin_ns = begin_ns,
							   .end_ns = end_ns,
							   .name = name,
							   .number = world->group})),
			 0);
}

/* The second rank is seen from its collective number first_b on. */
static void make(struct world *world, int count, int first_b)
{
	int64_t ready[2] = {1000000, 1000000};

	for (int i = 0; i < count; i++) {
		int64_t begin[2], end[2], together;
		uint32_t name = i % 5 ? 1 : 2;

		for (int rank = 0; rank < 2; rank++)
			begin[rank] = ready[rank] + world->step_ns +
				      random_below(world, world->jitter_ns);
		together = begin[0] > begin[1] ? begin[0] : begin[1];
		for (int rank = 0; rank < 2; rank++)
			ready[rank] = end[rank] =
				together + 1000 + random_below(world, world->wake_ns);
		add(world, &world->a, begin[0], end[0], name);
		if (i < first_b)
			continue;
		add(world, &world->b, to_b(world, begin[1]) + random_below(world, world->wrong_ns),
		    to_b(world, end[1]) + random_below(world, world->wrong_ns), name);
	}
}

static void clear(struct world *world)
{
	vec_free(&world->a);
	vec_free(&world->b);
}

/* The second trace has nothing before and after its collectives. */
static bool find(const collective_vec *a, const collective_vec *b, bool has_guess, int64_t guess_ns,
		 struct alignment *found)
{
	struct trace_span span = {0, 0};

	if (b->count)
		span = (struct trace_span){b->items[0].end_ns, b->items[b->count - 1].end_ns};
	return align_collectives(a, b, &span, has_guess, guess_ns, found);
}

/* How far a line is off at a time of b. */
static int64_t off_by(const struct world *world, const struct clock_line *line, int64_t ns)
{
	int64_t wanted = llround((double)ns * (1 + world->drift)) + world->offset_ns;

	return llabs(clock_line_apply(line, ns) - wanted);
}

static void expect_found(struct world *world, const struct alignment *found)
{
	const struct collective *b = world->b.items;
	int64_t most = (int64_t)found->error_ns + 2;

	assert_int_equal(found->by, ALIGN_COLLECTIVES);
	assert_int_equal(found->why, ALIGN_WHY_NONE);
	assert_true(off_by(world, &found->line, b[0].end_ns) <= most);
	assert_true(off_by(world, &found->line, b[world->b.count - 1].end_ns) <= most);
	assert_true(off_by(world, &found->line, b[world->b.count / 2].end_ns) <= most);
	assert_true(fabs(found->line.drift - world->drift) <= found->drift_error + 1e-8);
}

static void the_clock_is_found_within_the_error(void **state)
{
	static const int64_t offsets[] = {0, 1, -7000000, 3600000000000, -86400000000000};
	static const double drifts[] = {0, 20e-6, -150e-6, 400e-6};
	int lost = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct world world = {
			.seed = seed,
			.offset_ns = offsets[seed % 5],
			.drift = drifts[seed % 4],
			.step_ns = seed % 3 ? 900000 : 90000,
			.jitter_ns = seed % 3 ? 600000 : 60000,
			.wake_ns = seed % 7 ? 20000 : 300000,
			.lost_percent = seed % 2 ? 0 : 1,
		};
		struct alignment found;

		lost += world.lost_percent != 0;
		make(&world, 1500, (int)seed % 11 * 40);
		assert_true(find(&world.a, &world.b, false, 0, &found));
		assert_false(found.is_ambiguous);
		assert_true(alignment_error_known(&found));
		expect_found(&world, &found);
		assert_true(found.error_ns < 100000);
		assert_true(found.matched * 100 >= world.b.count * 95);
		clear(&world);
	}
	assert_true(lost > 50);
}

/* The collectives of the first second say little of the clock a minute later, and that is said. */
static void the_error_holds_in_all_of_the_trace(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world world = {.seed = seed,
				      .offset_ns = -7000000,
				      .drift = 20e-6,
				      .step_ns = 900000,
				      .jitter_ns = 600000,
				      .wake_ns = 300000};
		struct trace_span span = {0, 60000000000};
		struct alignment found, near;

		make(&world, 500, 0);
		assert_true(find(&world.a, &world.b, false, 0, &near));
		assert_true(align_collectives(&world.a, &world.b, &span, false, 0, &found));
		expect_found(&world, &found);
		assert_true(off_by(&world, &found.line, span.first_ns) <=
			    (int64_t)found.error_ns + 2);
		assert_true(off_by(&world, &found.line, span.last_ns) <=
			    (int64_t)found.error_ns + 2);
		assert_true(found.error_ns > 2 * near.error_ns);
		/* Where they match, the clock is known as well as ever. */
		assert_true(found.matched_error_ns == near.matched_error_ns);
		assert_true(near.matched_error_ns == near.error_ns);
		clear(&world);
	}
}

/* CUPTI's clock is off by microseconds: the bounds contradict each other, which is said. */
static void wrong_times_widen_the_error(void **state)
{
	struct world world = {.seed = 3,
			      .offset_ns = 5000000,
			      .step_ns = 900000,
			      .jitter_ns = 600000,
			      .wake_ns = 2000,
			      .wrong_ns = 40000};
	struct alignment found;

	make(&world, 1500, 10);
	assert_true(find(&world.a, &world.b, false, 0, &found));
	assert_true(found.slack_ns > 1000);
	/* They might as well be others. */
	assert_false(alignment_error_known(&found));
	/* What is wrong is 20 us on average. */
	assert_true(off_by(&world, &found.line, world.b.items[700].end_ns) <=
		    (int64_t)found.error_ns + 20000);
	assert_true(found.error_ns >= found.slack_ns);
	clear(&world);
}

static void collectives_that_are_all_alike_need_a_guess(void **state)
{
	struct world world = {.seed = 9, .offset_ns = 40000000, .step_ns = 1000000, .wake_ns = 1};
	struct alignment found;

	make(&world, 1000, 0);
	vec_for_each (span, &world.a)
		span->name = 1;
	vec_for_each (span, &world.b)
		span->name = 1;
	/* Each takes 200 us, and the next one is 1 ms away. */
	vec_for_each (span, &world.a)
		span->begin_ns -= 200000;
	vec_for_each (span, &world.b)
		span->begin_ns -= 200000;
	assert_false(find(&world.a, &world.b, false, 0, &found));
	assert_true(found.is_ambiguous);
	assert_true(find(&world.a, &world.b, true, 40300000, &found));
	assert_true(found.is_ambiguous);
	assert_false(alignment_error_known(&found));
	expect_found(&world, &found);
	/* By a guess that is wrong it is wrong, so no error can be stated. */
	assert_true(find(&world.a, &world.b, true, 36700000, &found));
	assert_true(found.is_ambiguous);
	assert_true(off_by(&world, &found.line, world.b.items[500].end_ns) > 2000000);
	assert_false(alignment_error_known(&found));
	clear(&world);
}

static void strangers_have_no_common_clock(void **state)
{
	struct world world = {.seed = 1, .step_ns = 900000, .jitter_ns = 600000, .wake_ns = 20000};
	struct world other = {.seed = 2, .step_ns = 500000, .jitter_ns = 900000, .wake_ns = 20000};
	struct alignment found;

	make(&world, 500, 0);
	make(&other, 500, 0);
	assert_false(find(&world.a, &other.b, false, 0, &found));
	assert_int_equal(found.by, ALIGN_NOTHING);
	assert_false(find(&world.a, &(collective_vec){0}, true, 0, &found));
	clear(&world);
	clear(&other);
}

/* All-reduces of a model's layers: the rhythm is the same on each node, the collectives are not. */
static void make_node(struct world *world, collective_vec *to, int64_t jitter_ns, uint32_t group)
{
	int64_t ns = 1000000;

	world->group = group;
	for (int step = 0; step < 20; step++) {
		ns += 2000000 + random_below(world, 1000000);
		for (int i = 0; i < 64; i++) {
			int64_t begin_ns =
				ns + (i % 2 ? 150000 : 60000) + random_below(world, jitter_ns);

			ns = begin_ns + 15000 + random_below(world, 5000);
			add(world, to, begin_ns, ns, 1);
		}
	}
}

static void nodes_in_the_same_rhythm_have_no_common_clock(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct world world = {.seed = seed};
		struct alignment found;

		make_node(&world, &world.a, 5000 * (int64_t)(1 + seed % 12), 0);
		make_node(&world, &world.b, 5000 * (int64_t)(1 + seed % 12), 0);
		assert_false(find(&world.a, &world.b, true, 0, &found));
		assert_int_equal(found.by, ALIGN_NOTHING);
		assert_int_not_equal(found.why, ALIGN_WHY_NONE);
		clear(&world);
	}
}

/* Two stages of a pipeline, each tensor parallel: the second one is always 5 ms later. */
static void stages_of_a_pipeline_have_no_known_error(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world world = {.seed = seed};
		struct alignment found;
		int64_t begin_ns = 0;

		for (int step = 0; step < 40; step++) {
			begin_ns += 12000000 + random_below(&world, 3000000);
			for (int stage = 0; stage < 2; stage++) {
				int64_t ns =
					begin_ns + stage * 5000000 + random_below(&world, 20000);

				for (int i = 0; i < 64; i++) {
					int64_t from = ns + (i % 2 ? 150000 : 60000) +
						       random_below(&world, 1000);

					ns = from + 15000 + random_below(&world, 5000);
					add(&world, stage ? &world.b : &world.a, from, ns, 1);
				}
			}
		}
		(void)find(&world.a, &world.b, true, 0, &found);
		assert_false(alignment_error_known(&found));
		clear(&world);
	}
}

static void only_collectives_of_the_same_group_match(void **state)
{
	struct world world = {
		.seed = 5, .step_ns = 900000, .jitter_ns = 600000, .wake_ns = 20000, .group = 7};
	struct alignment found;

	make(&world, 500, 0);
	assert_true(find(&world.a, &world.b, false, 0, &found));
	vec_for_each (span, &world.b)
		span->number = 8;
	assert_false(find(&world.a, &world.b, true, 0, &found));
	assert_int_equal(found.why, ALIGN_WHY_GROUPS);
	/* Not known in one of the traces. */
	vec_for_each (span, &world.b)
		span->number = 0;
	assert_true(find(&world.a, &world.b, false, 0, &found));
	clear(&world);
}

static int compare_ends(const void *left, const void *right)
{
	const struct collective *a = left, *b = right;

	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* Tensor parallel within each node, data parallel between them: the second is what both share. */
static void collectives_of_other_groups_are_passed(void **state)
{
	struct world world = {.seed = 6,
			      .offset_ns = 7000000,
			      .drift = 20e-6,
			      .step_ns = 3000000,
			      .jitter_ns = 600000,
			      .wake_ns = 20000,
			      .group = 3};
	struct alignment found;
	uint64_t shared;

	make(&world, 60, 0);
	shared = world.b.count;
	make_node(&world, &world.a, 20000, 1);
	make_node(&world, &world.b, 20000, 2);
	vec_sort(&world.a, compare_ends);
	vec_sort(&world.b, compare_ends);
	assert_true(find(&world.a, &world.b, false, 0, &found));
	assert_int_equal(found.matched, shared);
	expect_found(&world, &found);
	clear(&world);
}

static void the_place_may_be_late_in_a_long_trace(void **state)
{
	struct world world = {.seed = 7,
			      .offset_ns = 5000,
			      .step_ns = 90000,
			      .jitter_ns = 60000,
			      .wake_ns = 20000};
	struct alignment found;

	make(&world, 120000, 118500);
	assert_true(find(&world.b, &world.a, false, 0, &found));
	assert_false(found.is_ambiguous);
	assert_true(found.matched * 100 >= world.b.count * 95);
	assert_true(llabs(found.line.offset_ns + world.offset_ns) <= (int64_t)found.error_ns + 2);
	clear(&world);
}

static void times_at_the_ends_of_their_range_do_no_harm(void **state)
{
	collective_vec a = {0};
	struct alignment found;

	for (int i = 0; i < 100; i++)
		assert_int_equal(vec_push(&a, ((struct collective){0, INT64_MAX / 4, 1, 0})), 0);
	(void)find(&a, &a, true, 0, &found);
	vec_free(&a);
}

static void only_what_waits_for_all_is_a_collective(void **state)
{
	uint32_t kind = 0, other = 0;

	assert_true(collective_is("kernel", "ncclDevKernel_AllReduce_Sum_f16_RING_LL(...)", &kind));
	assert_true(collective_is("cpu_op", "gloo:all_reduce", &other));
	assert_int_equal(kind, other);
	assert_true(collective_is("step", "ProcessGroupGloo::allreduce", &other));
	assert_int_equal(kind, other);
	assert_true(collective_is("kernel", "ncclDevKernel_ReduceScatter_Sum_bf16", &other));
	assert_int_not_equal(kind, other);
	assert_false(collective_is("kernel", "ncclDevKernel_Broadcast_RING_LL", &kind));
	assert_false(collective_is("kernel", "ncclDevKernel_SendRecv", &kind));
	assert_false(collective_is("kernel", "vectorized_all_reduce_fused", &kind));
	assert_false(collective_is("cpu_op", "c10d::allreduce_", &kind));
	assert_false(collective_is("syscall", "futex", &kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clock_is_found_within_the_error),
		cmocka_unit_test(the_error_holds_in_all_of_the_trace),
		cmocka_unit_test(wrong_times_widen_the_error),
		cmocka_unit_test(collectives_that_are_all_alike_need_a_guess),
		cmocka_unit_test(strangers_have_no_common_clock),
		cmocka_unit_test(nodes_in_the_same_rhythm_have_no_common_clock),
		cmocka_unit_test(stages_of_a_pipeline_have_no_known_error),
		cmocka_unit_test(only_collectives_of_the_same_group_match),
		cmocka_unit_test(collectives_of_other_groups_are_passed),
		cmocka_unit_test(the_place_may_be_late_in_a_long_trace),
		cmocka_unit_test(times_at_the_ends_of_their_range_do_no_harm),
		cmocka_unit_test(only_what_waits_for_all_is_a_collective),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
