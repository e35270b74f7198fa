/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdlib.h>
#include "step_cost.h"
#include "step_units.h"

/* Time that a thread's next begin may still claim: it says only then that it was there. */
#define CLAIM_NS 1000000000ull

/* Of one CPU. */
struct seen {
	uint64_t hits[FBT_KIND_COUNT]; /* as of the last look, as are these three */
	uint64_t walk_ns[FBT_KIND_COUNT];
	uint64_t own_ns;
	uint64_t untraced;
	uint64_t spent_ns[FBT_KIND_COUNT]; /* between the last two, as is this */
	uint64_t lately_ns;
	uint64_t unclaimed_ns;
};

struct step_cost {
	const struct shared *shared;
	struct seen *seen; /* by CPU */
};

struct step_cost *step_cost__new(const struct shared *shared)
{
	struct step_cost *cost = calloc(1, sizeof(*cost));

	if (!cost)
		return NULL;
	cost->shared = shared;
	cost->seen = calloc(shared->cpu_count, sizeof(*cost->seen));
	if (cost->seen)
		return cost;
	free(cost);
	return NULL;
}

void step_cost__free(struct step_cost *cost)
{
	if (!cost)
		return;
	free(cost->seen);
	free(cost);
}

static uint64_t load(const __u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* At most what has passed: a step takes less than step_ns where nothing else is between two. */
static void take_spent(struct seen *seen, const struct fbt_hits *hits, uint32_t kind,
		       uint64_t step_ns, uint64_t time_ns)
{
	uint64_t count = load(&hits->begins[kind]) + load(&hits->ends[kind]);
	uint64_t walk_ns = load(&hits->walk_ns[kind]);

	seen->spent_ns[kind] =
		(count - seen->hits[kind]) * step_ns / 2 + walk_ns - seen->walk_ns[kind];
	if (seen->spent_ns[kind] > time_ns)
		seen->spent_ns[kind] = time_ns;
	seen->hits[kind] = count;
	seen->walk_ns[kind] = walk_ns;
}

/* The time of the threads that hit probes, at most what has passed: all of a CPU. */
static void take_own_time(struct seen *seen, const struct fbt_hits *hits, uint64_t time_ns)
{
	uint64_t own_ns = load(&hits->own_ns), untraced = load(&hits->untraced);

	seen->unclaimed_ns += time_ns;
	seen->lately_ns = own_ns - seen->own_ns;
	if (untraced != seen->untraced && seen->lately_ns < time_ns)
		seen->lately_ns = time_ns;
	if (seen->lately_ns > seen->unclaimed_ns)
		seen->lately_ns = seen->unclaimed_ns;
	seen->unclaimed_ns -= seen->lately_ns;
	if (seen->unclaimed_ns > CLAIM_NS)
		seen->unclaimed_ns = CLAIM_NS;
	seen->own_ns = own_ns;
	seen->untraced = untraced;
}

void step_cost__look(struct step_cost *cost, uint64_t kinds, uint64_t time_ns, uint64_t step_ns)
{
	for (uint32_t cpu = 0; cpu < cost->shared->cpu_count; cpu++) {
		const struct fbt_hits *hits = &cost->shared->hits[cpu];

		for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
			take_spent(&cost->seen[cpu], hits, kind, step_ns, time_ns);
		take_own_time(&cost->seen[cpu], hits, time_ns);
	}
}

uint64_t step_cost__spent(const struct step_cost *cost, uint32_t cpu, uint64_t kinds)
{
	uint64_t spent_ns = 0;

	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
		spent_ns += cost->seen[cpu].spent_ns[kind];
	return spent_ns;
}

struct rate_cost step_cost__worst(const struct step_cost *cost, uint64_t kinds, double share,
				  uint32_t *cpu)
{
	struct rate_cost worst = {0};
	double most = 0;

	for (uint32_t i = 0; i < cost->shared->cpu_count; i++) {
		uint64_t spent_ns = step_cost__spent(cost, i, kinds);
		uint64_t own_ns = cost->seen[i].lately_ns;
		double excess = (double)spent_ns - (double)own_ns * share;

		if (i && excess <= most)
			continue;
		most = excess;
		worst = (struct rate_cost){.spent_ns = spent_ns, .own_ns = own_ns};
		*cpu = i;
	}
	return worst;
}

void step_cost__forget_time(struct step_cost *cost)
{
	for (uint32_t cpu = 0; cpu < cost->shared->cpu_count; cpu++)
		cost->seen[cpu].unclaimed_ns = 0;
}

uint64_t step_cost__calls(const struct shared *shared, uint32_t kind)
{
	uint64_t calls = 0;

	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++)
		calls += load(&shared->hits[cpu].begins[kind]);
	return calls;
}
