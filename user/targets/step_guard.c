/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/step_guard.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "kernel/step_probes.h"
#include "targets/rate_guard.h"
#include "targets/step_sites.h"
#include "targets/steps_found.h"

/* Cost of a step's two probes if it was not measured. */
#define STEP_NS_DEFAULT 20000
#define PERIOD_NS	NS_PER_S
/* Period where detaching is slow: each probe takes some 0.1 s. */
#define SLOW_PERIOD_NS (60 * NS_PER_S)
/* How long to wait for open steps to end before they are cut off. */
#define WAIT_TRIES 20
#define WAIT_US	   100
/* Number of messages about one function. */
#define TOLD_MAX 4

/* What the probes of a kind cost on one CPU. */
struct kind_cost {
	uint64_t hits; /* the kernel side's counter at the last look, as are the next three */
	uint64_t emulated;
	uint64_t walk_ns;
	uint64_t excess_ns;
	uint64_t spent_ns; /* between the last two looks */
};

struct cpu {
	struct kind_cost kinds[FBT_KIND_COUNT];
	uint64_t excess_own_ns; /* the kernel side's counter at the last look */
	int64_t credit_ns;	/* what watched kinds may spend now, see rate_budget_look */
};

/* A row of the table: one step kind. */
struct guarded_kind {
	struct fbt_sampling sampling; /* watched_ns and off_ns count up to since_ns */
	uint64_t since_ns;	      /* since when the probes are on, or off; 0: not begun */
	bool off;
	uint64_t excess_ns; /* on all CPUs, between the last two looks */
	uint64_t bit;	    /* of the kind; 0: not watched */
	struct rate_guard rate;
	unsigned int told;
};

struct step_guard {
	const struct live *live;
	const struct shared *shared;
	struct rate_limits limits;
	struct guarded_kind kinds[FBT_KIND_COUNT];
	struct cpu *cpus;
	uint64_t excess_own_ns; /* on all CPUs, between the last two looks */
	uint64_t looked_ns;
	bool acted;
	bool forgives; /* the excess seen now may be that of a function switched off since */
};

struct look {
	uint64_t now_ns;
	uint64_t time_ns; /* since the last one */
	uint64_t watched; /* kinds that are RATE_WATCHED */
	struct guarded_kind *to_go;
};

struct step_guard *step_guard__new(const struct live *live, const struct shared *shared, bool quick)
{
	struct step_guard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return NULL;
	guard->live = live;
	guard->shared = shared;
	guard->limits = (struct rate_limits){
		.share = live->options->windows.rate_guard_percent / 100,
		.period_ns = quick ? PERIOD_NS : SLOW_PERIOD_NS,
	};
	guard->cpus = calloc(shared->cpu_count, sizeof(*guard->cpus));
	if (!guard->cpus) {
		step_guard__free(guard);
		return NULL;
	}
	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++)
		guard->cpus[cpu].credit_ns = RATE_BURST_NS;
	return guard;
}

void step_guard__free(struct step_guard *guard)
{
	if (!guard)
		return;
	free(guard->cpus);
	free(guard);
}

static uint64_t load(const __u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* At most time_ns is spent: steps in quick succession take less than step_ns each. */
static void take_cost(struct step_guard *guard, uint32_t cpu, uint32_t kind,
		      const struct fbt_cost *probes, uint64_t time_ns)
{
	const struct fbt_hits *hits = &guard->shared->hits[cpu];
	struct kind_cost *cost = &guard->cpus[cpu].kinds[kind];
	struct kind_cost now = {
		.hits = load(&hits->begins[kind]) + load(&hits->ends[kind]),
		.emulated = load(&hits->emulated[kind]),
		.walk_ns = load(&hits->walk_ns[kind]),
		.excess_ns = load(&hits->excess_ns[kind]),
	};
	uint64_t emulated;

	emulated = now.emulated - cost->emulated;
	now.spent_ns = ((now.hits - cost->hits - emulated) * probes->step_ns +
			emulated * probes->site_ns) /
			       2 +
		       now.walk_ns - cost->walk_ns;
	if (now.spent_ns > time_ns)
		now.spent_ns = time_ns;
	guard->kinds[kind].excess_ns += now.excess_ns - cost->excess_ns;
	*cost = now;
}

void step_guard__look(struct step_guard *guard, uint64_t kinds, uint64_t time_ns,
		      const struct fbt_cost *probes)
{
	guard->excess_own_ns = 0;
	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++)
		guard->kinds[kind].excess_ns = 0;
	for (uint32_t cpu = 0; cpu < guard->shared->cpu_count; cpu++) {
		uint64_t own_ns = load(&guard->shared->hits[cpu].excess_own_ns);

		for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
			take_cost(guard, cpu, kind, probes, time_ns);
		guard->excess_own_ns += own_ns - guard->cpus[cpu].excess_own_ns;
		guard->cpus[cpu].excess_own_ns = own_ns;
	}
}

void step_guard__charge(const struct step_guard *guard, const struct fbt_cost *probes)
{
	struct fbt_control *control = guard->shared->control;

	control->debt_max_ns = RATE_BURST_NS;
	control->charge_part = (uint64_t)(guard->limits.share * (double)FBT_PART_ONE);
	control->charge_site_ns = probes->site_ns;
	__atomic_store_n(&control->charge_ns, probes->step_ns, __ATOMIC_RELEASE);
}

uint64_t step_guard__spent(const struct step_guard *guard, uint32_t cpu, uint64_t kinds)
{
	uint64_t spent_ns = 0;

	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
		spent_ns += guard->cpus[cpu].kinds[kind].spent_ns;
	return spent_ns;
}

struct rate_cost step_guard__worst(const struct step_guard *guard, uint64_t kinds, uint64_t beside)
{
	struct rate_cost worst = {0};

	for (uint32_t cpu = 0; cpu < guard->shared->cpu_count; cpu++) {
		uint64_t spent_ns = step_guard__spent(guard, cpu, kinds);

		if (spent_ns <= worst.spent_ns)
			continue;
		worst.spent_ns = spent_ns;
		worst.beside_ns = step_guard__spent(guard, cpu, beside);
	}
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
		worst.excess_ns += guard->kinds[kind].excess_ns;
	return worst;
}

double step_guard__over_share(const struct step_guard *guard)
{
	uint64_t excess_ns = 0;
	double share;

	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++)
		excess_ns += guard->kinds[kind].excess_ns;
	if (!excess_ns)
		return 0;
	if (excess_ns >= guard->excess_own_ns)
		return 1;
	share = guard->limits.share + (double)excess_ns / (double)guard->excess_own_ns;
	return share < 1 ? share : 1;
}

uint64_t step_guard__calls(const struct step_guard *guard, uint32_t kind)
{
	return SHARED_HITS(guard->shared, begins, kind);
}

bool step_guard__has_acted(const struct step_guard *guard)
{
	return guard->acted;
}

/* Adds the time since since_ns, in which the probes were on, or off. */
static void count_time(struct guarded_kind *row, uint64_t now_ns)
{
	uint64_t time_ns = now_ns > row->since_ns ? now_ns - row->since_ns : 0;

	if (row->off)
		row->sampling.off_ns += time_ns;
	else
		row->sampling.watched_ns += time_ns;
	row->since_ns = now_ns;
}

static void send_sampling(struct step_guard *guard, uint64_t kinds, uint64_t now_ns)
{
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		struct guarded_kind *row = &guard->kinds[kind];

		row->sampling.kind = kind;
		row->sampling.time_ns = now_ns;
		record_send(guard->live->output, &row->sampling, sizeof(row->sampling),
			    FBT_EVENT_SAMPLING);
	}
}

static void set_off(struct step_guard *guard, uint64_t kinds, bool off, uint64_t now_ns)
{
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		count_time(&guard->kinds[kind], now_ns);
		guard->kinds[kind].off = off;
	}
}

static uint32_t kind_of(const struct step_guard *guard, const struct guarded_kind *row)
{
	return (uint32_t)(row - guard->kinds);
}

static const char *name_of(const struct step_guard *guard, const struct guarded_kind *row)
{
	return steps_found__function(guard->live->found, kind_of(guard, row))->name;
}

/* Counts the calls since the last look. */
static uint64_t take_calls(struct step_guard *guard, struct guarded_kind *row)
{
	uint64_t before = row->sampling.calls;

	row->sampling.calls = step_guard__calls(guard, kind_of(guard, row));
	return row->sampling.calls - before;
}

/* What the kind costs, in percent of a thread's time or of a CPU's, whichever is larger. */
static double find_percent(const struct step_guard *guard, const struct guarded_kind *row,
			   uint64_t time_ns)
{
	struct rate_cost cost = step_guard__worst(guard, row->bit, 0);
	double of_cpu = percent_of((double)cost.spent_ns, (double)time_ns);
	double of_thread = 100 * step_guard__over_share(guard);

	return of_thread > of_cpu ? of_thread : of_cpu;
}

static void tell_off(struct step_guard *guard, struct guarded_kind *row, uint64_t calls,
		     uint64_t time_ns)
{
	double percent = find_percent(guard, row, time_ns);
	bool quick = guard->limits.period_ns == PERIOD_NS;

	if (!row->sampling.cost_percent)
		row->sampling.cost_percent = percent < 1 ? 1 : (uint32_t)percent;
	if (row->told++ >= TOLD_MAX)
		return;
	log_warn("%s: called at least %s times a second, its probes take up to %s of the time of "
		 "its thread: from now on they are on for a moment each %s, and its steps are a "
		 "sample. It is hardly a step: name another by --step (--list-steps -p PID shows "
		 "candidates), or bear the cost with --rate-guard 0",
		 name_of(guard, row),
		 FORMAT_COUNT((uint64_t)((double)calls * 1e9 / (double)time_ns)),
		 FORMAT_PERCENT(percent), quick ? "second" : "minute");
}

/* Gives open steps a moment to end; no others begin. */
static void await_ends(const struct step_guard *guard, uint64_t kinds)
{
	for (int i = 0; i < WAIT_TRIES; i++) {
		if (!stream__has_open_steps(guard->live->stream, kinds))
			return;
		usleep(WAIT_US);
	}
}

static void cut_steps(struct step_guard *guard, uint64_t kinds, uint64_t now_ns)
{
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));)
		guard->kinds[kind].sampling.cut_steps +=
			stream__cut_steps(guard->live->stream, kind_bit(kind), now_ns);
}

static void switch_off(struct step_guard *guard, uint64_t kinds, uint64_t now_ns)
{
	struct fbt_control *control = guard->shared->control;

	guard->acted = true;
	guard->forgives = true;
	__atomic_or_fetch(&control->off_kinds, kinds, __ATOMIC_SEQ_CST);
	__atomic_or_fetch(&control->sampled_kinds, kinds, __ATOMIC_SEQ_CST);
	await_ends(guard, kinds);
	set_off(guard, kinds, true, now_ns);
	step_sites__switch_off(guard->live->sites, kinds);
	steps_found__switch_off(guard->live->found, kinds);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	cut_steps(guard, kinds, now_ns);
	__atomic_store_n(&control->switched_ns, now_ns, __ATOMIC_SEQ_CST);
	send_sampling(guard, kinds, now_ns);
}

static void switch_on(struct step_guard *guard, struct guarded_kind *row)
{
	struct fbt_control *control = guard->shared->control;

	__atomic_store_n(&control->switched_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	step_sites__switch_on(guard->live->sites, row->bit);
	if (steps_found__switch_on(guard->live->found, row->bit)) {
		step_sites__switch_off(guard->live->sites, row->bit);
		log_warn("%s: its probes cannot be attached again: no more of its steps are seen "
			 "in this window",
			 name_of(guard, row));
		row->bit = 0;
		return;
	}
	set_off(guard, row->bit, false, clock_ns(CLOCK_MONOTONIC));
}

static void keep_on(struct step_guard *guard, struct guarded_kind *row, uint64_t now_ns)
{
	struct fbt_control *control = guard->shared->control;

	__atomic_and_fetch(&control->sampled_kinds, ~row->bit, __ATOMIC_SEQ_CST);
	set_off(guard, row->bit, false, now_ns);
	send_sampling(guard, row->bit, now_ns);
	if (row->told++ < TOLD_MAX)
		log_info("%s: called less often now: all of its steps are traced again",
			 name_of(guard, row));
}

/*
 * Watched kinds share a budget. If it is exceeded, the one that has spent most must be switched
 * off.
 */
static void look_at_budget(struct step_guard *guard, struct look *look)
{
	struct guarded_kind *most = NULL, *over = NULL;
	bool is_spent = false;

	guard->limits.sampled = 0;
	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		struct guarded_kind *row = &guard->kinds[i];
		struct rate_cost cost;

		if (!row->bit)
			continue;
		if (row->rate.state != RATE_WATCHED) {
			guard->limits.sampled++;
			continue;
		}
		look->watched |= row->bit;
		cost = step_guard__worst(guard, row->bit, 0);
		rate_guard_spend(&row->rate, look->time_ns, &cost);
		if (guard->forgives)
			rate_guard_forgive(&row->rate);
		if (!most || row->rate.lately_ns > most->rate.lately_ns)
			most = row;
		if (rate_guard_is_over(&row->rate) &&
		    (!over || row->rate.over_ns > over->rate.over_ns))
			over = row;
	}
	guard->forgives = false;
	for (uint32_t cpu = 0; cpu < guard->shared->cpu_count; cpu++)
		is_spent |=
			rate_budget_look(&guard->cpus[cpu].credit_ns, &guard->limits, look->time_ns,
					 step_guard__spent(guard, cpu, look->watched));
	look->to_go = over || !is_spent ? over : most;
}

static void turn_sampled(struct step_guard *guard, struct guarded_kind *row,
			 const struct look *look)
{
	struct rate_cost cost = step_guard__worst(guard, row->bit, look->watched);
	enum rate_verdict verdict =
		rate_guard_look(&row->rate, &guard->limits, look->now_ns, &cost);

	if (verdict == RATE_SWITCH_OFF)
		switch_off(guard, row->bit, look->now_ns);
	else if (verdict == RATE_SWITCH_ON)
		switch_on(guard, row);
	else if (verdict == RATE_KEEP_ON)
		keep_on(guard, row, look->now_ns);
}

static void turn_row(struct step_guard *guard, struct guarded_kind *row, const struct look *look)
{
	uint64_t calls = take_calls(guard, row);

	if (row == look->to_go) {
		rate_guard_let_go(&row->rate, look->now_ns);
		tell_off(guard, row, calls, look->time_ns);
		switch_off(guard, row->bit, look->now_ns);
	} else if (!(row->bit & look->watched)) {
		turn_sampled(guard, row, look);
	}
}

static void begin_watch(struct step_guard *guard, uint32_t kind, uint64_t now_ns)
{
	struct guarded_kind *row = &guard->kinds[kind];

	row->since_ns = now_ns;
	row->bit = kind_bit(kind);
	rate_guard_begin(&row->rate, now_ns);
}

void step_guard__turn(struct step_guard *guard, uint64_t now_ns, const struct fbt_cost *cost)
{
	struct fbt_cost probes = *cost;
	struct look look = {.now_ns = now_ns, .time_ns = 1};
	bool is_first = !guard->looked_ns;
	size_t count = steps_found__count(guard->live->found);
	uint64_t kinds = 0;

	if (guard->limits.share <= 0)
		return;
	if (now_ns > guard->looked_ns)
		look.time_ns = now_ns - guard->looked_ns;
	guard->looked_ns = now_ns;
	for (uint32_t kind = 1; kind <= count; kind++) {
		if (!guard->kinds[kind].since_ns)
			begin_watch(guard, kind, now_ns);
		kinds |= guard->kinds[kind].bit;
	}
	if (!probes.step_ns)
		probes.step_ns = probes.site_ns = STEP_NS_DEFAULT;
	step_guard__look(guard, kinds, look.time_ns, &probes);
	step_guard__charge(guard, &probes);
	/* Hits before the first look happened in an unknown time and do not count. */
	if (is_first)
		return;
	look_at_budget(guard, &look);
	for (uint32_t kind = 1; kind <= count; kind++) {
		if (guard->kinds[kind].bit)
			turn_row(guard, &guard->kinds[kind], &look);
	}
}

void step_guard__give_up(struct step_guard *guard, uint64_t kinds, uint64_t now_ns)
{
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		struct guarded_kind *row = &guard->kinds[kind];

		row->bit = 0;
		if (!row->since_ns)
			row->since_ns = now_ns;
	}
}

void step_guard__finish(struct step_guard *guard, uint64_t now_ns)
{
	uint64_t sampled = 0;

	for (uint32_t kind = 1; kind < FBT_KIND_COUNT; kind++) {
		struct guarded_kind *row = &guard->kinds[kind];

		if (!row->since_ns || !row->sampling.cost_percent)
			continue;
		count_time(row, now_ns);
		row->sampling.calls = step_guard__calls(guard, kind);
		sampled |= kind_bit(kind);
	}
	send_sampling(guard, sampled, now_ns);
}
