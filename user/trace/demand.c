/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/demand.h"

#include "base/arith.h"

static uint64_t demand_price_ppm(const struct demand_limits *limits, uint64_t events, uint64_t ns)
{
	double spent_ns = (double)events * (double)limits->event_ps / 1000;
	double all_ns = (double)ns * (double)(limits->cpus ? limits->cpus : 1);

	return ns ? (uint64_t)(spent_ns / all_ns * 1e6) : 0;
}

void demand_want(struct demand *demand, bool is_explained, uint64_t now_ns)
{
	demand->wanted = true;
	demand->wanted_ns = now_ns;
	demand->missed += !is_explained;
}

/* It is wanted, and the last refusal is long ago. */
static bool is_due(const struct demand *demand, const struct demand_limits *limits, uint64_t now_ns)
{
	if (!demand->wanted || demand->state == FBT_EXPLAIN_FAILED)
		return false;
	return demand->state != FBT_EXPLAIN_REFUSED ||
	       now_ns - demand->refused_ns >= limits->idle_ns;
}

bool demand_needs_count(const struct demand *demand, const struct demand_limits *limits,
			uint64_t now_ns)
{
	if (demand->state == FBT_EXPLAIN_ARMED)
		return now_ns - demand->look_ns >= DEMAND_LOOK_NS;
	if (!is_due(demand, limits, now_ns))
		return false;
	return !demand->has_rate || now_ns - demand->look_ns >= DEMAND_RATE_NS;
}

static void begin_rate(struct demand *demand, uint64_t now_ns, uint64_t events)
{
	demand->has_rate = true;
	demand->look_ns = now_ns;
	demand->look_events = events;
}

void demand_arm(struct demand *demand, uint64_t now_ns, uint64_t events)
{
	demand->state = FBT_EXPLAIN_ARMED;
	demand->wanted = false;
	demand->was_dear = false;
	demand->wanted_ns = now_ns;
	begin_rate(demand, now_ns, events);
}

static void leave(struct demand *demand, enum fbt_explain_state state)
{
	demand->state = state;
	demand->wanted = false;
	demand->has_rate = false;
}

static enum demand_act refuse(struct demand *demand, uint64_t now_ns)
{
	bool was_armed = demand->state == FBT_EXPLAIN_ARMED;

	leave(demand, FBT_EXPLAIN_REFUSED);
	demand->refused_ns = now_ns;
	return was_armed ? DEMAND_GIVE_UP : DEMAND_REFUSE;
}

static bool is_dear(const struct demand *demand, const struct demand_limits *limits)
{
	return limits->limit_ppm && demand->price_ppm > limits->limit_ppm;
}

/* Adds a stretch in which it was armed, and finds what it costs now. */
static void account(struct demand *demand, const struct demand_limits *limits, uint64_t now_ns,
		    uint64_t events)
{
	uint64_t grown = sub_saturating(events, demand->look_events);
	uint64_t ns = sub_saturating(now_ns, demand->look_ns);

	demand->events += grown;
	demand->armed_ns += ns;
	demand->price_ppm = demand_price_ppm(limits, grown, ns);
	begin_rate(demand, now_ns, events);
}

static enum demand_act watch(struct demand *demand, const struct demand_limits *limits,
			     uint64_t now_ns, uint64_t events)
{
	bool was_dear = demand->was_dear;

	if (!demand_needs_count(demand, limits, now_ns))
		return DEMAND_NOTHING;
	account(demand, limits, now_ns, events);
	demand->was_dear = is_dear(demand, limits);
	if (demand->was_dear && was_dear)
		return refuse(demand, now_ns);
	if (now_ns - demand->wanted_ns < limits->idle_ns)
		return DEMAND_NOTHING;
	leave(demand, FBT_EXPLAIN_OFF);
	return DEMAND_DISARM;
}

enum demand_act demand_turn(struct demand *demand, const struct demand_limits *limits,
			    uint64_t now_ns, uint64_t events)
{
	if (demand->state == FBT_EXPLAIN_ARMED)
		return watch(demand, limits, now_ns, events);
	if (!demand_needs_count(demand, limits, now_ns))
		return DEMAND_NOTHING;
	if (!demand->has_rate) {
		begin_rate(demand, now_ns, events);
		return DEMAND_NOTHING;
	}
	demand->price_ppm = demand_price_ppm(limits, sub_saturating(events, demand->look_events),
					     sub_saturating(now_ns, demand->look_ns));
	if (is_dear(demand, limits))
		return refuse(demand, now_ns);
	demand_arm(demand, now_ns, events);
	return DEMAND_ARM;
}

void demand_fail(struct demand *demand)
{
	leave(demand, FBT_EXPLAIN_FAILED);
}

void demand_finish(struct demand *demand, uint64_t now_ns, uint64_t events)
{
	if (demand->state != FBT_EXPLAIN_ARMED)
		return;
	demand->events += sub_saturating(events, demand->look_events);
	demand->armed_ns += sub_saturating(now_ns, demand->look_ns);
}
