/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "step_cost.h"
#include "step_units.h"

/* Of one CPU. */
struct seen {
	uint64_t hits[FBT_KIND_COUNT]; /* as of the last look, as are these three */
	uint64_t walk_ns[FBT_KIND_COUNT];
	uint64_t excess_ns[FBT_KIND_COUNT];
	uint64_t excess_own_ns;
	uint64_t spent_ns[FBT_KIND_COUNT]; /* between the last two */
};

struct step_cost {
	const struct shared *shared;
	struct seen *seen;		    /* by CPU */
	uint64_t excess_ns[FBT_KIND_COUNT]; /* between the last two looks, as is this */
	uint64_t excess_own_ns;
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

static void take_excess(struct step_cost *cost, struct seen *seen, const struct fbt_hits *hits,
			uint32_t kind)
{
	uint64_t excess_ns = load(&hits->excess_ns[kind]);

	cost->excess_ns[kind] += excess_ns - seen->excess_ns[kind];
	seen->excess_ns[kind] = excess_ns;
}

void step_cost__look(struct step_cost *cost, uint64_t kinds, uint64_t time_ns, uint64_t step_ns)
{
	cost->excess_own_ns = 0;
	memset(cost->excess_ns, 0, sizeof(cost->excess_ns));
	for (uint32_t cpu = 0; cpu < cost->shared->cpu_count; cpu++) {
		const struct fbt_hits *hits = &cost->shared->hits[cpu];
		struct seen *seen = &cost->seen[cpu];
		uint64_t own_ns = load(&hits->excess_own_ns);

		for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
			take_spent(seen, hits, kind, step_ns, time_ns);
			take_excess(cost, seen, hits, kind);
		}
		cost->excess_own_ns += own_ns - seen->excess_own_ns;
		seen->excess_own_ns = own_ns;
	}
}

void step_cost__charge(const struct step_cost *cost, double share, uint64_t step_ns)
{
	struct fbt_control *control = cost->shared->control;

	control->debt_max_ns = RATE_BURST_NS;
	control->charge_part = (uint64_t)(share * (double)FBT_PART_ONE);
	__atomic_store_n(&control->charge_ns, step_ns, __ATOMIC_RELEASE);
}

uint64_t step_cost__spent(const struct step_cost *cost, uint32_t cpu, uint64_t kinds)
{
	uint64_t spent_ns = 0;

	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
		spent_ns += cost->seen[cpu].spent_ns[kind];
	return spent_ns;
}

struct rate_cost step_cost__worst(const struct step_cost *cost, uint64_t kinds, uint64_t beside)
{
	struct rate_cost worst = {0};

	for (uint32_t cpu = 0; cpu < cost->shared->cpu_count; cpu++) {
		uint64_t spent_ns = step_cost__spent(cost, cpu, kinds);

		if (spent_ns <= worst.spent_ns)
			continue;
		worst.spent_ns = spent_ns;
		worst.beside_ns = step_cost__spent(cost, cpu, beside);
	}
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
		worst.excess_ns += cost->excess_ns[kind];
	return worst;
}

double step_cost__over_share(const struct step_cost *cost, double share)
{
	uint64_t excess_ns = 0;

	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++)
		excess_ns += cost->excess_ns[kind];
	if (!excess_ns)
		return 0;
	if (excess_ns >= cost->excess_own_ns)
		return 1;
	share += (double)excess_ns / (double)cost->excess_own_ns;
	return share < 1 ? share : 1;
}

uint64_t step_cost__calls(const struct shared *shared, uint32_t kind)
{
	uint64_t calls = 0;

	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++)
		calls += load(&shared->hits[cpu].begins[kind]);
	return calls;
}
