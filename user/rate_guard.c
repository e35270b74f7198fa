/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdbool.h>
#include "rate_guard.h"

static uint64_t since(uint64_t now_ns, uint64_t before_ns)
{
	return now_ns > before_ns ? now_ns - before_ns : 0;
}

static double sample_share(const struct rate_limits *limits)
{
	return limits->share < RATE_SAMPLE_SHARE ? limits->share : RATE_SAMPLE_SHARE;
}

/* What a slice may cost. */
static double slice_cost_ns(const struct rate_limits *limits)
{
	return (double)limits->period_ns * sample_share(limits);
}

static void begin_at(struct rate_guard *guard, uint64_t now_ns)
{
	guard->begin_ns = now_ns;
	guard->spent_ns = 0;
	guard->own_ns = 0;
}

void rate_guard_begin(struct rate_guard *guard, uint64_t now_ns)
{
	guard->state = RATE_WATCHED;
	guard->credit_ns = RATE_BURST_NS;
	begin_at(guard, now_ns);
}

static enum rate_verdict switch_off(struct rate_guard *guard)
{
	guard->state = RATE_OFF;
	return RATE_SWITCH_OFF;
}

static enum rate_verdict look_watched(struct rate_guard *guard, const struct rate_limits *limits,
				      uint64_t now_ns, uint64_t spent_ns, uint64_t own_ns)
{
	double credit_ns =
		(double)guard->credit_ns + (double)own_ns * limits->share - (double)spent_ns;

	if (credit_ns >= 0) {
		/* Not before: the look may be a late one, of a tool that was stopped for seconds.
		 */
		if (credit_ns > (double)RATE_BURST_NS)
			credit_ns = (double)RATE_BURST_NS;
		guard->credit_ns = (int64_t)credit_ns;
		return RATE_STAY;
	}
	begin_at(guard, now_ns);
	return switch_off(guard);
}

/* A slice that cost more than it should, for nothing is done at once, has a longer period. */
static enum rate_verdict look_off(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns)
{
	uint64_t off_ns = since(now_ns, guard->begin_ns);

	if (off_ns < limits->period_ns ||
	    (double)off_ns * sample_share(limits) < (double)guard->spent_ns)
		return RATE_STAY;
	guard->state = RATE_SLICE;
	begin_at(guard, now_ns);
	return RATE_SWITCH_ON;
}

static enum rate_verdict look_slice(struct rate_guard *guard, const struct rate_limits *limits,
				    uint64_t now_ns)
{
	double long_ns = slice_cost_ns(limits) / limits->share;
	bool is_long = (double)since(now_ns, guard->begin_ns) >= long_ns;
	bool is_dear = (double)guard->spent_ns > (double)guard->own_ns * limits->share;

	if ((double)guard->spent_ns >= slice_cost_ns(limits) || (is_long && is_dear))
		return switch_off(guard);
	if (!is_long)
		return RATE_STAY;
	guard->state = RATE_WATCHED;
	guard->credit_ns = RATE_BURST_NS / 2;
	return RATE_KEEP_ON;
}

enum rate_verdict rate_guard_look(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns, uint64_t spent_ns, uint64_t own_ns)
{
	guard->spent_ns += spent_ns;
	guard->own_ns += own_ns;
	if (guard->state == RATE_WATCHED)
		return look_watched(guard, limits, now_ns, spent_ns, own_ns);
	if (guard->state == RATE_OFF)
		return look_off(guard, limits, now_ns);
	return look_slice(guard, limits, now_ns);
}
