/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report/tail.h"

#include <math.h>
#include <stdlib.h>

#include "base/arith.h"

#define CLASSES_PER_OCTAVE 12
#define CLASSES		   (64 * CLASSES_PER_OCTAVE)
#define STEPS_MIN	   200
#define SLOWEST_PERCENT	   1
#define SLOWEST_MAX	   10 /* percent of the steps */
#define LONGER_MIN	   1.3

struct length_class {
	uint64_t steps;
	uint64_t total_ns;
	uint64_t parts_ns[STEP_PARTS];
};

struct tail {
	uint64_t steps;
	struct length_class classes[CLASSES];
};

struct tail *tail__new(void)
{
	return calloc(1, sizeof(struct tail));
}

void tail__free(struct tail *tail)
{
	free(tail);
}

static size_t class_of(uint64_t ns)
{
	double class = ns ? log2((double)ns) * CLASSES_PER_OCTAVE : 0;

	return class < CLASSES - 1 ? (size_t) class : CLASSES - 1;
}

static void add_class(struct length_class *to, const struct length_class *from)
{
	to->steps += from->steps;
	to->total_ns = add_saturating(to->total_ns, from->total_ns);
	for (int i = 0; i < STEP_PARTS; i++)
		to->parts_ns[i] = add_saturating(to->parts_ns[i], from->parts_ns[i]);
}

void tail__add(struct tail *tail, const struct step_parts *parts, uint64_t total_ns)
{
	struct length_class one = {.steps = 1, .total_ns = total_ns};

	for (int i = 0; i < STEP_PARTS; i++)
		one.parts_ns[i] = parts->ns[i];
	add_class(&tail->classes[class_of(total_ns)], &one);
	tail->steps++;
}

static void find_mean(const struct length_class *sum, struct tail_group *group)
{
	double steps = (double)sum->steps;

	*group =
		(struct tail_group){.steps = sum->steps, .total_ns = (double)sum->total_ns / steps};
	for (int i = 0; i < STEP_PARTS; i++)
		group->parts_ns[i] = (double)sum->parts_ns[i] / steps;
}

static const struct length_class *find_median(const struct tail *tail)
{
	uint64_t steps = 0;
	size_t at = 0;

	while (at < CLASSES - 1 && (steps += tail->classes[at].steps) <= tail->steps / 2)
		at++;
	return &tail->classes[at];
}

bool tail__find(const struct tail *tail, struct tail_group *slowest, struct tail_group *median)
{
	struct length_class sum = {0};

	if (tail->steps < STEPS_MIN)
		return false;
	for (size_t i = CLASSES; i-- && sum.steps * 100 < tail->steps * SLOWEST_PERCENT;)
		add_class(&sum, &tail->classes[i]);
	if (sum.steps * 100 > tail->steps * SLOWEST_MAX)
		return false;
	find_mean(&sum, slowest);
	find_mean(find_median(tail), median);
	return slowest->total_ns >= LONGER_MIN * median->total_ns;
}
