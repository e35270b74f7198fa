/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "rate_guard.h"

/* How long it is remembered who has spent most. */
#define MEMORY_NS 1e9

static uint64_t since(uint64_t now_ns, uint64_t before_ns)
{
	return now_ns > before_ns ? now_ns - before_ns : 0;
}

/* Of one function's slices, where so many have some. */
static double slice_share(const struct rate_limits *limits, unsigned int sampled)
{
	double most = limits->share / 2 / (sampled ? sampled : 1);

	return most < RATE_SAMPLE_SHARE ? most : RATE_SAMPLE_SHARE;
}

static double share_beside(const struct rate_limits *limits, unsigned int sampled)
{
	return limits->share - slice_share(limits, sampled) * sampled;
}

double rate_watched_share(const struct rate_limits *limits)
{
	return share_beside(limits, limits->sampled);
}

void rate_budget_begin(struct rate_budget *budget)
{
	budget->credit_ns = RATE_BURST_NS;
}

bool rate_budget_look(struct rate_budget *budget, const struct rate_limits *limits,
		      uint64_t time_ns, uint64_t spent_ns)
{
	double credit_ns = (double)budget->credit_ns +
			   (double)time_ns * rate_watched_share(limits) - (double)spent_ns;

	/* Not before: the look may be a late one, of a tool that was stopped for seconds. */
	if (credit_ns > (double)RATE_BURST_NS)
		credit_ns = (double)RATE_BURST_NS;
	if (credit_ns >= 0) {
		budget->credit_ns = (int64_t)credit_ns;
		return false;
	}
	budget->credit_ns = RATE_BURST_NS;
	return true;
}

static void begin_at(struct rate_guard *guard, uint64_t now_ns)
{
	guard->begin_ns = now_ns;
	guard->spent_ns = 0;
	guard->beside_ns = 0;
	guard->excess_ns = 0;
}

void rate_guard_begin(struct rate_guard *guard, uint64_t now_ns)
{
	guard->state = RATE_WATCHED;
	guard->lately_ns = 0;
	guard->over_ns = 0;
	begin_at(guard, now_ns);
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
	begin_at(guard, now_ns);
	guard->state = RATE_OFF;
}

/* A slice that cost more than it should, for nothing is done at once, has a longer period. */
static enum rate_verdict look_off(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns)
{
	uint64_t off_ns = since(now_ns, guard->begin_ns);
	double share = slice_share(limits, limits->sampled);

	if (off_ns < limits->period_ns || (double)off_ns * share < (double)guard->spent_ns)
		return RATE_STAY;
	guard->state = RATE_SLICE;
	begin_at(guard, now_ns);
	return RATE_SWITCH_ON;
}

/* Whether there would be room for it beside those that are watched. */
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
	uint64_t time_ns = since(now_ns, guard->begin_ns);
	bool is_long = (double)time_ns >= cost_ns / limits->share;

	if ((double)guard->spent_ns >= cost_ns || (is_long && !is_cheap(guard, limits, time_ns))) {
		guard->state = RATE_OFF;
		return RATE_SWITCH_OFF;
	}
	if (!is_long)
		return RATE_STAY;
	guard->state = RATE_WATCHED;
	guard->lately_ns = 0;
	guard->over_ns = 0;
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
