/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/rate_guard.h"

#include "base/arith.h"

/* Time constant of lately_ns and over_ns. */
#define MEMORY_NS 1e9

/* The share of time for one function's slices if this many functions are sampled. */
static double slice_share(const struct rate_limits *limits, unsigned int sampled)
{
	double most = limits->share / 2 / (sampled ? sampled : 1);

	return most < RATE_SAMPLE_SHARE ? most : RATE_SAMPLE_SHARE;
}

/* The share that is left for watched functions. */
static double share_beside(const struct rate_limits *limits, unsigned int sampled)
{
	return limits->share - slice_share(limits, sampled) * sampled;
}

double rate_watched_share(const struct rate_limits *limits)
{
	return share_beside(limits, limits->sampled);
}

bool rate_budget_look(int64_t *credit_ns, const struct rate_limits *limits, uint64_t time_ns,
		      uint64_t spent_ns)
{
	double left_ns = (double)*credit_ns + (double)time_ns * rate_watched_share(limits) -
			 (double)spent_ns;
	bool is_spent = left_ns < 0;

	/*
	 * Capped after spending, because the look may be late: the tool may have been stopped for
	 * seconds.
	 */
	if (is_spent || left_ns > (double)RATE_BURST_NS)
		left_ns = (double)RATE_BURST_NS;
	*credit_ns = (int64_t)left_ns;
	return is_spent;
}

static void enter(struct rate_guard *guard, enum rate_state state, uint64_t now_ns)
{
	*guard = (struct rate_guard){.state = state, .begin_ns = now_ns};
}

void rate_guard_begin(struct rate_guard *guard, uint64_t now_ns)
{
	enter(guard, RATE_WATCHED, now_ns);
}

void rate_guard_spend(struct rate_guard *guard, uint64_t time_ns, const struct rate_cost *cost)
{
	double forgotten = (double)time_ns / MEMORY_NS;
	double kept = forgotten < 1 ? 1 - forgotten : 0;

	guard->lately_ns = guard->lately_ns * kept + (double)cost->spent_ns;
	guard->over_ns = guard->over_ns * kept + (double)cost->excess_ns;
}

bool rate_guard_is_over(const struct rate_guard *guard)
{
	return guard->over_ns >= (double)RATE_EXCESS_NS;
}

void rate_guard_forgive(struct rate_guard *guard)
{
	guard->over_ns = 0;
}

void rate_guard_let_go(struct rate_guard *guard, uint64_t now_ns)
{
	enter(guard, RATE_OFF, now_ns);
}

/* Switching takes time. A slice that cost more than its share is followed by a longer period. */
static enum rate_verdict look_off(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns)
{
	uint64_t off_ns = sub_saturating(now_ns, guard->begin_ns);
	double share = slice_share(limits, limits->sampled);

	if (off_ns < limits->period_ns || (double)off_ns * share < (double)guard->spent_ns)
		return RATE_STAY;
	enter(guard, RATE_SLICE, now_ns);
	return RATE_SWITCH_ON;
}

/* Whether the function would fit in the share together with the watched ones. */
static bool is_cheap(const struct rate_guard *guard, const struct rate_limits *limits,
		     uint64_t time_ns)
{
	double share = share_beside(limits, limits->sampled ? limits->sampled - 1 : 0);

	return !guard->excess_ns &&
	       (double)guard->spent_ns + (double)guard->beside_ns <= (double)time_ns * share;
}

static enum rate_verdict look_slice(struct rate_guard *guard, const struct rate_limits *limits,
				    uint64_t now_ns)
{
	double cost_ns = (double)limits->period_ns * slice_share(limits, limits->sampled);
	uint64_t time_ns = sub_saturating(now_ns, guard->begin_ns);
	bool is_long = (double)time_ns >= cost_ns / limits->share;

	if ((double)guard->spent_ns >= cost_ns || (is_long && !is_cheap(guard, limits, time_ns))) {
		guard->state = RATE_OFF;
		return RATE_SWITCH_OFF;
	}
	if (!is_long)
		return RATE_STAY;
	enter(guard, RATE_WATCHED, now_ns);
	return RATE_KEEP_ON;
}

enum rate_verdict rate_guard_look(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns, const struct rate_cost *cost)
{
	guard->spent_ns += cost->spent_ns;
	guard->beside_ns += cost->beside_ns;
	guard->excess_ns += cost->excess_ns;
	if (guard->state == RATE_OFF)
		return look_off(guard, limits, now_ns);
	return guard->state == RATE_SLICE ? look_slice(guard, limits, now_ns) : RATE_STAY;
}
