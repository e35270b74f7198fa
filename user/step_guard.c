/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "log.h"
#include "rate_guard.h"
#include "report_format.h"
#include "step_guard.h"
#include "step_units.h"

/* Of a step's two probes, where it was not measured. */
#define STEP_NS_DEFAULT 3000
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

/* Of one CPU, as of the last look. */
struct seen {
	uint64_t hits[FBT_KIND_COUNT];
	uint64_t own_ns;
	uint64_t untraced;
	uint64_t lately_ns; /* time that counts since the look before */
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
	struct unit units[FBT_KIND_COUNT];
	struct watch watches[FBT_KIND_COUNT];
	struct seen *seen; /* by CPU */
	uint64_t looked_ns;
	bool acted;
};

/* What happened to a unit since the last look. */
struct look {
	uint64_t spent_ns; /* these two: on the CPU where it is worst */
	uint64_t own_ns;
	uint64_t calls;
	uint64_t time_ns;
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
	guard->seen = calloc(shared->cpu_count, sizeof(*guard->seen));
	if (guard->seen)
		return guard;
	free(guard);
	return NULL;
}

void step_guard__free(struct step_guard *guard)
{
	if (!guard)
		return;
	free(guard->seen);
	free(guard);
}

bool step_guard__has_acted(const struct step_guard *guard)
{
	return guard->acted;
}

static uint64_t load(const __u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Hits of some kinds on one CPU since the last look; adds to *calls. */
static uint64_t take_hits(struct step_guard *guard, uint32_t cpu, uint64_t kinds, uint64_t *calls)
{
	const struct fbt_hits *hits = &loader__shared(guard->parts.loader)->hits[cpu];
	uint64_t *seen = guard->seen[cpu].hits, count = 0;

	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		uint64_t begins = load(&hits->begins[kind]), now = begins + load(&hits->ends[kind]);

		count += now - seen[kind];
		seen[kind] = now;
		*calls += begins;
	}
	return count;
}

static uint64_t count_calls(const struct step_guard *guard, uint32_t kind)
{
	const struct shared *shared = loader__shared(guard->parts.loader);
	uint64_t calls = 0;

	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++)
		calls += load(&shared->hits[cpu].begins[kind]);
	return calls;
}

/* For all units: the time of the threads that hit probes, at most what has passed. */
static void count_own_time(struct step_guard *guard, uint64_t time_ns)
{
	const struct shared *shared = loader__shared(guard->parts.loader);

	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++) {
		struct seen *seen = &guard->seen[cpu];
		uint64_t own_ns = load(&shared->hits[cpu].own_ns);
		uint64_t untraced = load(&shared->hits[cpu].untraced);

		seen->lately_ns = own_ns - seen->own_ns;
		if (untraced != seen->untraced || seen->lately_ns > time_ns)
			seen->lately_ns = time_ns;
		seen->own_ns = own_ns;
		seen->untraced = untraced;
	}
}

static struct look look_at(struct step_guard *guard, const struct unit *unit, uint64_t step_ns)
{
	uint32_t cpus = loader__shared(guard->parts.loader)->cpu_count;
	uint64_t before = 0, calls = 0;
	struct look look = {0};
	double worst = 0;

	for (uint32_t kind = 0; (kind = kind_next(unit->kinds, kind));)
		before += guard->watches[kind].sampling.calls;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		uint64_t spent_ns = take_hits(guard, cpu, unit->kinds, &calls) * step_ns / 2;
		uint64_t own_ns = guard->seen[cpu].lately_ns;
		double excess = (double)spent_ns - (double)own_ns * guard->limits.share;

		if (cpu && excess <= worst)
			continue;
		worst = excess;
		look.spent_ns = spent_ns;
		look.own_ns = own_ns;
	}
	for (uint32_t kind = 0; (kind = kind_next(unit->kinds, kind));)
		guard->watches[kind].sampling.calls = count_calls(guard, kind);
	look.calls = calls > before ? calls - before : 0;
	return look;
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

static void tell_off(struct step_guard *guard, struct unit *unit, const struct look *look)
{
	double per_s = (double)look->calls * 1e9 / (double)look->time_ns;
	double percent = percent_of((double)look->spent_ns, (double)look->own_ns);
	bool quick = guard->limits.period_ns == PERIOD_NS;
	char count[FORMAT_MAX], share[FORMAT_MAX];

	if (!look->own_ns || percent > 100)
		percent = 100;
	for (uint32_t kind = 0; (kind = kind_next(unit->kinds, kind));) {
		struct fbt_sampling *sampling = &guard->watches[kind].sampling;

		if (!sampling->cost_percent)
			sampling->cost_percent = percent < 1 ? 1 : (uint32_t)percent;
	}
	if (unit->told++ >= TOLD_MAX)
		return;
	log_warn("%s: called %s times a second, its probes take %s of the time of its thread: from "
		 "now on they are on for a moment each %s, and its steps are a sample. It is "
		 "hardly a step: name another by --step (--list-steps -p PID shows candidates), or "
		 "bear the cost with --rate-guard 0",
		 name_of(guard, unit), format_count(count, (uint64_t)per_s),
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

static void turn_unit(struct step_guard *guard, struct unit *unit, uint64_t now_ns,
		      uint64_t time_ns, uint64_t step_ns)
{
	struct look look = look_at(guard, unit, step_ns);

	look.time_ns = time_ns;
	switch (rate_guard_look(&unit->rate, &guard->limits, now_ns, look.spent_ns, look.own_ns)) {
	case RATE_STAY:
		return;
	case RATE_SWITCH_OFF:
		if (!(loader__shared(guard->parts.loader)->control->sampled_kinds & unit->kinds))
			tell_off(guard, unit, &look);
		switch_off(guard, unit->kinds, now_ns);
		return;
	case RATE_SWITCH_ON:
		switch_on(guard, unit);
		return;
	case RATE_KEEP_ON:
		keep_on(guard, unit, now_ns);
		return;
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
	size_t count = steps_found__count(guard->parts.found);
	uint64_t time_ns;

	if (guard->limits.share <= 0)
		return;
	time_ns = guard->looked_ns && now_ns > guard->looked_ns ? now_ns - guard->looked_ns : 1;
	guard->looked_ns = now_ns;
	count_own_time(guard, time_ns);
	for (uint32_t kind = 1; kind <= count; kind++) {
		if (!guard->watches[kind].since_ns)
			begin_watch(guard, kind, now_ns);
	}
	for (uint32_t kind = 1; kind <= count; kind++) {
		if (guard->units[kind].kinds)
			turn_unit(guard, &guard->units[kind], now_ns, time_ns,
				  step_ns ? step_ns : STEP_NS_DEFAULT);
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
