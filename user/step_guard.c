/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "log.h"
#include "rate_guard.h"
#include "report_format.h"
#include "step_cost.h"
#include "step_guard.h"
#include "step_units.h"

/* Of a step's two probes, where it was not measured. */
#define STEP_NS_DEFAULT 20000
#define PERIOD_NS	1000000000ull
/* Where probes are slow to go: each takes some 0.1 s. */
#define SLOW_PERIOD_NS 60000000000ull
/* How long open steps are waited for before they are cut. */
#define WAIT_TRIES 20
#define WAIT_US	   100
/* Of one function that comes and goes. */
#define TOLD_MAX 4

/* Of one kind. */
struct watch {
	struct fbt_sampling sampling; /* watched_ns and off_ns up to since_ns */
	uint64_t since_ns;	      /* since when its probes are on, or off; 0: not begun */
	bool off;
};

/* Kinds that are probed together; kept with the lowest of them. */
struct unit {
	struct rate_guard rate;
	uint64_t kinds;
	unsigned int told;
};

struct step_guard {
	struct step_guard_parts parts;
	struct rate_limits limits;
	struct rate_budget *budgets; /* by CPU */
	struct step_cost *cost;
	struct unit units[FBT_KIND_COUNT];
	struct watch watches[FBT_KIND_COUNT];
	uint64_t looked_ns;
	bool acted;
	bool forgives; /* a function that was let go at the last look may have driven threads over
			*/
};

/* One look at all of them. */
struct look {
	uint64_t now_ns;
	uint64_t time_ns; /* since the one before */
	uint64_t watched; /* kinds */
	struct unit *to_go;
};

struct step_guard *step_guard__new(const struct step_guard_parts *parts)
{
	struct step_guard *guard = calloc(1, sizeof(*guard));
	const struct shared *shared = loader__shared(parts->loader);

	if (!guard)
		return NULL;
	guard->parts = *parts;
	guard->limits = (struct rate_limits){
		.share = parts->options->windows.rate_guard_percent / 100,
		.period_ns = loader__has_multi(parts->loader) ? PERIOD_NS : SLOW_PERIOD_NS,
	};
	guard->cost = step_cost__new(shared);
	guard->budgets = calloc(shared->cpu_count, sizeof(*guard->budgets));
	if (!guard->cost || !guard->budgets) {
		step_guard__free(guard);
		return NULL;
	}
	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++)
		rate_budget_begin(&guard->budgets[cpu]);
	return guard;
}

void step_guard__free(struct step_guard *guard)
{
	if (!guard)
		return;
	step_cost__free(guard->cost);
	free(guard->budgets);
	free(guard);
}

bool step_guard__has_acted(const struct step_guard *guard)
{
	return guard->acted;
}

static uint64_t count_calls(const struct step_guard *guard, uint32_t kind)
{
	return step_cost__calls(loader__shared(guard->parts.loader), kind);
}

/* Its probes were on, or off, up to now. */
static void count_time(struct watch *watch, uint64_t now_ns)
{
	uint64_t time_ns = now_ns > watch->since_ns ? now_ns - watch->since_ns : 0;

	if (watch->off)
		watch->sampling.off_ns += time_ns;
	else
		watch->sampling.watched_ns += time_ns;
	watch->since_ns = now_ns;
}

static void send(struct step_guard *guard, uint64_t kinds, uint64_t now_ns)
{
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		struct watch *watch = &guard->watches[kind];

		watch->sampling.kind = kind;
		watch->sampling.time_ns = now_ns;
		record_send(guard->parts.output, &watch->sampling, sizeof(watch->sampling),
			    FBT_EVENT_SAMPLING);
	}
}

static void set_off(struct step_guard *guard, uint64_t kinds, bool off, uint64_t now_ns)
{
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		count_time(&guard->watches[kind], now_ns);
		guard->watches[kind].off = off;
	}
}

/* Of the unit's functions the one that is called most. */
static const char *name_of(const struct step_guard *guard, const struct unit *unit)
{
	uint32_t busiest = 0;

	for (uint32_t kind = 0; (kind = kind_next(unit->kinds, kind));) {
		if (!busiest ||
		    guard->watches[kind].sampling.calls > guard->watches[busiest].sampling.calls)
			busiest = kind;
	}
	return steps_found__name(guard->parts.found, busiest);
}

/* Begins since the look before. */
static uint64_t take_calls(struct step_guard *guard, const struct unit *unit)
{
	uint64_t calls = 0;

	for (uint32_t kind = 0; (kind = kind_next(unit->kinds, kind));) {
		__u64 *seen = &guard->watches[kind].sampling.calls;
		uint64_t now = count_calls(guard, kind);

		calls += now - *seen;
		*seen = now;
	}
	return calls;
}

/* The share of a thread's time at that pace, or of a CPU's, which is no less. */
static double find_percent(const struct step_guard *guard, const struct unit *unit,
			   uint64_t time_ns)
{
	struct rate_cost cost = step_cost__worst(guard->cost, unit->kinds, 0);
	double of_cpu = percent_of((double)cost.spent_ns, (double)time_ns);
	double of_thread = 100 * step_cost__over_share(guard->cost, guard->limits.share);

	return of_thread > of_cpu ? of_thread : of_cpu;
}

static void tell_off(struct step_guard *guard, struct unit *unit, uint64_t calls, uint64_t time_ns)
{
	double percent = find_percent(guard, unit, time_ns);
	bool quick = guard->limits.period_ns == PERIOD_NS;
	char count[FORMAT_MAX], share[FORMAT_MAX];

	for (uint32_t kind = 0; (kind = kind_next(unit->kinds, kind));) {
		struct fbt_sampling *sampling = &guard->watches[kind].sampling;

		if (!sampling->cost_percent)
			sampling->cost_percent = percent < 1 ? 1 : (uint32_t)percent;
	}
	if (unit->told++ >= TOLD_MAX)
		return;
	log_warn("%s: called at least %s times a second, its probes take up to %s of the time of "
		 "its thread: from now on they are on for a moment each %s, and its steps are a "
		 "sample. It is hardly a step: name another by --step (--list-steps -p PID shows "
		 "candidates), or bear the cost with --rate-guard 0",
		 name_of(guard, unit),
		 format_count(count, (uint64_t)((double)calls * 1e9 / (double)time_ns)),
		 format_percent(share, percent), quick ? "second" : "minute");
}

/* Those that are open get a moment to end; no other begins. */
static void await_ends(const struct step_guard *guard, uint64_t kinds)
{
	for (int i = 0; i < WAIT_TRIES; i++) {
		if (!stream__has_open_steps(guard->parts.stream, kinds))
			return;
		usleep(WAIT_US);
	}
}

static void cut_steps(struct step_guard *guard, uint64_t kinds, uint64_t now_ns)
{
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
		guard->watches[kind].sampling.cut_steps +=
			stream__cut_steps(guard->parts.stream, kind_bit(kind), now_ns);
}

static void switch_off(struct step_guard *guard, uint64_t kinds, uint64_t now_ns)
{
	struct fbt_control *control = loader__shared(guard->parts.loader)->control;

	guard->acted = true;
	guard->forgives = true;
	__atomic_or_fetch(&control->off_kinds, kinds, __ATOMIC_SEQ_CST);
	__atomic_or_fetch(&control->sampled_kinds, kinds, __ATOMIC_SEQ_CST);
	await_ends(guard, kinds);
	set_off(guard, kinds, true, now_ns);
	steps_found__switch_off(guard->parts.found, guard->parts.traced, kinds);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	cut_steps(guard, kinds, now_ns);
	__atomic_store_n(&control->switched_ns, now_ns, __ATOMIC_SEQ_CST);
	send(guard, kinds, now_ns);
}

static void switch_on(struct step_guard *guard, struct unit *unit)
{
	struct fbt_control *control = loader__shared(guard->parts.loader)->control;

	__atomic_store_n(&control->switched_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	if (steps_found__switch_on(guard->parts.found, guard->parts.traced, unit->kinds)) {
		log_warn("%s: its probes could not be put back: no more steps of it are seen in "
			 "this window",
			 name_of(guard, unit));
		unit->kinds = 0;
		return;
	}
	set_off(guard, unit->kinds, false, clock_ns(CLOCK_MONOTONIC));
}

static void keep_on(struct step_guard *guard, struct unit *unit, uint64_t now_ns)
{
	struct fbt_control *control = loader__shared(guard->parts.loader)->control;

	__atomic_and_fetch(&control->sampled_kinds, ~unit->kinds, __ATOMIC_SEQ_CST);
	set_off(guard, unit->kinds, false, now_ns);
	send(guard, unit->kinds, now_ns);
	if (unit->told++ < TOLD_MAX)
		log_info("%s: called less often now: all of its steps are traced again",
			 name_of(guard, unit));
}

/* Those that are watched share a budget: where it is exceeded, the one that spent most must go. */
static void look_at_budget(struct step_guard *guard, struct look *look)
{
	uint32_t cpu_count = loader__shared(guard->parts.loader)->cpu_count;
	struct unit *most = NULL, *over = NULL;
	bool is_spent = false;

	guard->limits.sampled = 0;
	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		struct unit *unit = &guard->units[i];

		if (unit->kinds && unit->rate.state == RATE_WATCHED)
			look->watched |= unit->kinds;
		else if (unit->kinds)
			guard->limits.sampled++;
	}
	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		struct unit *unit = &guard->units[i];
		struct rate_cost cost;

		if (!(unit->kinds & look->watched))
			continue;
		cost = step_cost__worst(guard->cost, unit->kinds, 0);
		rate_guard_spend(&unit->rate, look->time_ns, &cost);
		if (guard->forgives)
			rate_guard_forgive(&unit->rate);
		if (!most || unit->rate.lately_ns > most->rate.lately_ns)
			most = unit;
		if (rate_guard_is_over(&unit->rate) &&
		    (!over || unit->rate.over_ns > over->rate.over_ns))
			over = unit;
	}
	guard->forgives = false;
	for (uint32_t cpu = 0; cpu < cpu_count; cpu++) {
		is_spent |= rate_budget_look(&guard->budgets[cpu], &guard->limits, look->time_ns,
					     step_cost__spent(guard->cost, cpu, look->watched));
	}
	look->to_go = over || !is_spent ? over : most;
}

static void turn_sampled(struct step_guard *guard, struct unit *unit, const struct look *look)
{
	struct rate_cost cost = step_cost__worst(guard->cost, unit->kinds, look->watched);

	switch (rate_guard_look(&unit->rate, &guard->limits, look->now_ns, &cost)) {
	case RATE_STAY:
		return;
	case RATE_SWITCH_OFF:
		switch_off(guard, unit->kinds, look->now_ns);
		return;
	case RATE_SWITCH_ON:
		switch_on(guard, unit);
		return;
	case RATE_KEEP_ON:
		keep_on(guard, unit, look->now_ns);
		return;
	}
}

static void turn_unit(struct step_guard *guard, struct unit *unit, const struct look *look)
{
	uint64_t calls = take_calls(guard, unit);

	if (unit == look->to_go) {
		rate_guard_let_go(&unit->rate, look->now_ns);
		tell_off(guard, unit, calls, look->time_ns);
		switch_off(guard, unit->kinds, look->now_ns);
	} else if (!(unit->kinds & look->watched)) {
		turn_sampled(guard, unit, look);
	}
}

/* A function that was found since the last turn. */
static void begin_watch(struct step_guard *guard, uint32_t kind, uint64_t now_ns)
{
	struct unit *unit;
	uint64_t kinds = steps_found__unit(guard->parts.found, kind);
	uint32_t lowest = kind_next(kinds, 0);

	if (!lowest)
		return;
	unit = &guard->units[lowest];
	guard->watches[kind].since_ns = now_ns;
	if (!unit->kinds)
		rate_guard_begin(&unit->rate, now_ns);
	unit->kinds |= kinds;
}

void step_guard__turn(struct step_guard *guard, uint64_t now_ns, uint64_t step_ns)
{
	struct look look = {.now_ns = now_ns, .time_ns = 1};
	bool is_first = !guard->looked_ns;
	size_t count = steps_found__count(guard->parts.found);
	uint64_t kinds = 0;

	if (guard->limits.share <= 0)
		return;
	if (now_ns > guard->looked_ns)
		look.time_ns = now_ns - guard->looked_ns;
	guard->looked_ns = now_ns;
	for (uint32_t kind = 1; kind <= count; kind++) {
		if (!guard->watches[kind].since_ns)
			begin_watch(guard, kind, now_ns);
		kinds |= guard->units[kind].kinds;
	}
	if (!step_ns)
		step_ns = STEP_NS_DEFAULT;
	step_cost__look(guard->cost, kinds, look.time_ns, step_ns);
	step_cost__charge(guard->cost, guard->limits.share, step_ns);
	/* Since when there were hits is not known: none is held against them. */
	if (is_first)
		return;
	look_at_budget(guard, &look);
	for (uint32_t kind = 1; kind <= count; kind++) {
		if (guard->units[kind].kinds)
			turn_unit(guard, &guard->units[kind], &look);
	}
}

void step_guard__finish(struct step_guard *guard, uint64_t now_ns)
{
	uint64_t sampled = 0;

	for (uint32_t kind = 1; kind < FBT_KIND_COUNT; kind++) {
		struct watch *watch = &guard->watches[kind];

		if (!watch->since_ns || !watch->sampling.cost_percent)
			continue;
		count_time(watch, now_ns);
		watch->sampling.calls = count_calls(guard, kind);
		sampled |= kind_bit(kind);
	}
	send(guard, sampled, now_ns);
}
