/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "tally/tail.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arith.h"

#define OCTAVES		   64
#define CLASSES_PER_OCTAVE 32
#define CLASSES		   (OCTAVES * CLASSES_PER_OCTAVE)
#define STEPS_MIN	   100
#define SLOWEST_PERCENT	   1
/*
 * If the classes of the slowest hold more of all steps than this, those steps are a kind of their
 * own, not a tail.
 */
#define SLOWEST_MAX 10
#define LONGER_MIN  1.1
/* The steps that stand for the median: those between these percentiles of length. */
#define MEDIAN_FROM 45
#define MEDIAN_TO   55

struct length_class {
	uint64_t steps;
	uint64_t total_ns;
	uint64_t parts_ns[STEP_PARTS];
};

struct octave {
	struct length_class classes[CLASSES_PER_OCTAVE];
};

struct tail {
	uint64_t steps;
	struct octave *octaves[OCTAVES]; /* NULL: no step is of such a length */
};

struct tail *tail__new(void)
{
	return calloc(1, sizeof(struct tail));
}

void tail__free(struct tail *tail)
{
	for (size_t i = 0; tail && i < OCTAVES; i++)
		free(tail->octaves[i]);
	free(tail);
}

static int octave_of(uint64_t ns)
{
	return ns ? OCTAVES - 1 - __builtin_clzll(ns) : 0;
}

/* The index of a class in its octave. All classes of an octave have the same width. */
static uint64_t class_of(uint64_t ns, int octave)
{
	uint64_t above = ns & ~(UINT64_C(1) << octave);

	return octave >= 5 ? above >> (octave - 5) : above << (5 - octave);
}
_Static_assert(CLASSES_PER_OCTAVE == 1 << 5, "class_of says so");

int tail__add(struct tail *tail, const struct step_parts *parts, uint64_t total_ns)
{
	int octave = octave_of(total_ns);
	struct length_class *class;

	if (!tail->octaves[octave])
		tail->octaves[octave] = calloc(1, sizeof(struct octave));
	if (!tail->octaves[octave])
		return -ENOMEM;
	class = &tail->octaves[octave]->classes[total_ns ? class_of(total_ns, octave) : 0];
	class->steps++;
	class->total_ns = add_saturating(class->total_ns, total_ns);
	for (int i = 0; i < STEP_PARTS; i++)
		class->parts_ns[i] = add_saturating(class->parts_ns[i], parts->ns[i]);
	tail->steps++;
	return 0;
}

static const struct length_class *class_at(const struct tail *tail, int index)
{
	const struct octave *octave = tail->octaves[index / CLASSES_PER_OCTAVE];

	return octave ? &octave->classes[index % CLASSES_PER_OCTAVE] : NULL;
}

/*
 * The mean of the steps from one rank by length up to another. A class that lies across a rank
 * counts with its share on this side of the rank.
 */
static void find_mean(const struct tail *tail, uint64_t from, uint64_t to, struct tail_group *group)
{
	uint64_t rank = 0;

	*group = (struct tail_group){.steps = to - from};
	for (int index = 0; index < CLASSES && rank < to; index++) {
		const struct length_class *class = class_at(tail, index);
		uint64_t first = rank, taken;
		double share;

		if (!class || !class->steps)
			continue;
		rank += class->steps;
		if (rank <= from)
			continue;
		taken = min_u64(rank, to) - max_u64(first, from);
		share = (double)taken / (double)class->steps / (double)group->steps;
		group->total_ns += (double)class->total_ns * share;
		for (int i = 0; i < STEP_PARTS; i++)
			group->parts_ns[i] += (double)class->parts_ns[i] * share;
	}
}

/* Counts all steps in the classes that hold this many of the slowest. */
static uint64_t count_beside(const struct tail *tail, uint64_t slowest)
{
	uint64_t steps = 0;

	for (int index = CLASSES; index-- && steps < slowest;) {
		const struct length_class *class = class_at(tail, index);

		steps += class ? class->steps : 0;
	}
	return steps;
}

bool tail__find(const struct tail *tail, struct tail_group *slowest, struct tail_group *median)
{
	uint64_t steps = tail->steps, count = steps / (100 / SLOWEST_PERCENT);

	if (steps < STEPS_MIN || count_beside(tail, count) > steps / (100 / SLOWEST_MAX))
		return false;
	find_mean(tail, steps - count, steps, slowest);
	find_mean(tail, steps / 100 * MEDIAN_FROM + steps % 100 * MEDIAN_FROM / 100,
		  steps / 100 * MEDIAN_TO + steps % 100 * MEDIAN_TO / 100, median);
	return slowest->total_ns >= LONGER_MIN * median->total_ns;
}
