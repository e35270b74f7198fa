/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "judge/explained.h"
#include "kernel/explain_programs.h"
#include "kernel/shared.h"
#include "stream/fault_sites.h"
#include "stream/sampler.h"
#include "proc/machine_load.h"
#include "trace/demand.h"
#include "trace/wanted.h"

/* If it could not be measured: more than on any machine that was. */
#define EVENT_PS_DEFAULT 500000
/* On a virtual machine, where the timer's interrupt leaves for the host; less on others. */
#define SAMPLE_PS 15000000
/* Of a fault that is counted, on a thread whose faults are timed too, as they are then. */
#define FAULT_PS 120000
/* A cause that took less than this part of the step arms nothing. */
#define WORTH_PART	20
#define PPM_PER_PERCENT 10000.0
#define PERCENT(ppm)	format_share((char[FORMAT_MAX]){""}, ppm)

/* Kinds of which this file attaches the programs. */
static const enum fbt_explain machine_wide[] = {FBT_EXPLAIN_SWITCHES, FBT_EXPLAIN_WAKES};
#define MACHINE_WIDE (sizeof(machine_wide) / sizeof(machine_wide[0]))

/* What is found out, for messages. */
static const char *const subjects[FBT_EXPLAIN_COUNT] = {
	[FBT_EXPLAIN_SWITCHES] = "who takes the CPU",
	[FBT_EXPLAIN_WAKES] = "who ends waits",
	[FBT_EXPLAIN_SAMPLES] = "which functions compute",
	[FBT_EXPLAIN_FAULTS] = "which functions have page faults",
};

_Static_assert(WANTED_MAX == SAMPLER_THREADS, "a thread that is wanted can be sampled");
_Static_assert(WANTED_MAX == FBT_FAULT_THREADS, "and its page faults can be counted");

struct explain {
	const struct live *live;
	struct explain_programs *programs;
	int load_err;
	struct demand demands[FBT_EXPLAIN_COUNT];
	struct demand_limits limits[FBT_EXPLAIN_COUNT];
	struct wanted sampled; /* threads whose steps computed for too long */
	struct sampler sampler;
	struct wanted counted; /* threads whose steps had too many page faults */
	struct fault_events fault_events;
	uint64_t faults; /* of their steps */
	double samples;	 /* that there would be, if these threads always had a CPU */
	uint64_t turn_ns;
	uint64_t lost_before[FBT_EXPLAIN_COUNT]; /* this window */
};

static void set_limits(struct explain *explain)
{
	const struct options *options = explain->live->options;
	bool always = options->explain == EXPLAIN_ALWAYS;

	for (size_t i = 0; i < MACHINE_WIDE; i++) {
		enum fbt_explain kind = machine_wide[i];
		uint64_t ps = options->explain_ps[kind];

		if (!ps && explain->programs)
			ps = explain_programs__measure_ps(explain->programs, kind);

		explain->limits[kind] = (struct demand_limits){
			.limit_ppm = always ? 0 : options->explain_limit_ppm,
			.idle_ns = always ? UINT64_MAX : options->explain_idle_ns,
			.event_ps = ps ? ps : EVENT_PS_DEFAULT,
			.cpus = machine_cpus(),
		};
	}
	explain->limits[FBT_EXPLAIN_SAMPLES] = explain->limits[FBT_EXPLAIN_SWITCHES];
	explain->limits[FBT_EXPLAIN_SAMPLES].event_ps = SAMPLE_PS;
	explain->limits[FBT_EXPLAIN_FAULTS] = explain->limits[FBT_EXPLAIN_SWITCHES];
	explain->limits[FBT_EXPLAIN_FAULTS].event_ps = FAULT_PS;
}

struct explain *explain__new(const struct live *live)
{
	struct explain *explain = calloc(1, sizeof(*explain));

	if (!explain)
		return NULL;
	explain->live = live;
	if (live->options->explain == EXPLAIN_OFF)
		return explain;
	explain->load_err = explain_programs__load(&explain->programs, live->loader);
	if (explain->load_err)
		log_debug("what explains slow steps cannot be loaded: %s",
			  strerror(-explain->load_err));
	set_limits(explain);
	return explain;
}

void explain_measure(struct loader *loader, uint64_t ps[FBT_EXPLAIN_COUNT])
{
	struct explain_programs *programs;
	int err = explain_programs__load(&programs, loader);

	for (size_t i = 0; i < MACHINE_WIDE; i++) {
		enum fbt_explain kind = machine_wide[i];

		ps[kind] = err ? 0 : explain_programs__measure_ps(programs, kind);
		/* Later windows cannot measure it: the tool is confined then. */
		ps[kind] = ps[kind] ? ps[kind] : EVENT_PS_DEFAULT;
	}
	explain_programs__free(programs);
}

static int fault_map(const struct explain *explain)
{
	return loader__map(explain->live->loader, "fault_sums");
}

static void clear_faults(struct explain *explain)
{
	if (explain->fault_events.count)
		fault_events_clear(&explain->fault_events, fault_map(explain));
}

void explain__free(struct explain *explain)
{
	if (!explain)
		return;
	sampler_clear(&explain->sampler);
	clear_faults(explain);
	explain_programs__free(explain->programs);
	free(explain);
}

static void fail(struct explain *explain, enum fbt_explain kind, int err)
{
	demand_fail(&explain->demands[kind]);
	log_warn("%s cannot be found out on this machine: %s", subjects[kind], strerror(-err));
}

/* A thread that has ended needs no samples. */
static int sample_threads(struct explain *explain)
{
	int program = explain_programs__sample(explain->programs), err = 0;

	for (uint32_t i = 0; i < explain->sampled.count && !err; i++) {
		err = sampler_add(&explain->sampler, program, explain->sampled.threads[i].tid);
		err = err == -ESRCH ? 0 : err;
	}
	return err;
}

static int count_faults(struct explain *explain)
{
	int programs[2], err = 0;

	explain_programs__faults(explain->programs, programs);
	for (uint32_t i = 0; i < explain->counted.count && !err; i++) {
		err = fault_events_add(&explain->fault_events, fault_map(explain), programs,
				       explain->counted.threads[i].tid);
		err = err == -ESRCH ? 0 : err;
	}
	return err;
}

static void detach(struct explain *explain, enum fbt_explain kind)
{
	if (kind == FBT_EXPLAIN_SAMPLES)
		sampler_clear(&explain->sampler);
	else if (kind == FBT_EXPLAIN_FAULTS)
		clear_faults(explain);
	else if (explain->programs)
		explain_programs__detach(explain->programs, kind);
}

static bool attach(struct explain *explain, enum fbt_explain kind)
{
	int err = explain->load_err;

	if (!err && kind == FBT_EXPLAIN_SAMPLES)
		err = sample_threads(explain);
	else if (!err && kind == FBT_EXPLAIN_FAULTS)
		err = count_faults(explain);
	else if (!err)
		err = explain_programs__attach(explain->programs, kind);
	if (!err)
		return true;
	/* Threads before the one that failed. */
	detach(explain, kind);
	fail(explain, kind, err);
	return false;
}

static uint64_t lost_so_far(const struct explain *explain, int kind)
{
	const struct shared *shared = loader__shared(explain->live->loader);

	return __atomic_load_n(&shared->control->explain_lost[kind], __ATOMIC_RELAXED);
}

void explain__begin(struct explain *explain)
{
	uint64_t count = 0;

	for (int kind = 0; kind < FBT_EXPLAIN_COUNT; kind++)
		explain->lost_before[kind] = lost_so_far(explain, kind);
	explain->turn_ns = clock_ns(CLOCK_MONOTONIC);
	if (explain->live->options->explain != EXPLAIN_ALWAYS)
		return;
	for (size_t i = 0; i < MACHINE_WIDE; i++) {
		if (!attach(explain, machine_wide[i]))
			continue;
		(void)machine_switches(&count);
		demand_arm(&explain->demands[machine_wide[i]], clock_ns(CLOCK_MONOTONIC), count);
	}
	if (!explain->load_err)
		demand_arm(&explain->demands[FBT_EXPLAIN_SAMPLES], explain->turn_ns, 0);
	if (!explain->load_err)
		demand_arm(&explain->demands[FBT_EXPLAIN_FAULTS], explain->turn_ns, 0);
}

static void want_samples(struct explain *explain, uint32_t tid, uint64_t now_ns)
{
	uint32_t dropped;

	if (!wanted_add(&explain->sampled, tid, now_ns, &dropped))
		return;
	sampler_remove(&explain->sampler, dropped);
	if (explain->demands[FBT_EXPLAIN_SAMPLES].state == FBT_EXPLAIN_ARMED)
		(void)sample_threads(explain);
}

static void want_faults(struct explain *explain, uint32_t tid, uint64_t now_ns)
{
	uint32_t dropped;

	if (!wanted_add(&explain->counted, tid, now_ns, &dropped))
		return;
	fault_events_remove(&explain->fault_events, fault_map(explain), dropped);
	if (explain->demands[FBT_EXPLAIN_FAULTS].state == FBT_EXPLAIN_ARMED)
		(void)count_faults(explain);
}

static bool lives(void *ctx, uint32_t tid)
{
	return shared_slot_of(ctx, tid) != NULL;
}

/* Their places are free for others, and their IDs may be given to new threads. */
static void drop_ended(struct explain *explain)
{
	struct shared *shared = loader__shared(explain->live->loader);
	uint32_t tid;

	while ((tid = wanted_drop_ended(&explain->sampled, lives, shared)))
		sampler_remove(&explain->sampler, tid);
	while ((tid = wanted_drop_ended(&explain->counted, lives, shared)))
		fault_events_remove(&explain->fault_events, fault_map(explain), tid);
}

/* Faults between steps are not counted; they cost half as much. */
static void add_faults(struct explain *explain, const struct fbt_step *step)
{
	if (wanted_has(&explain->counted, step->tid))
		explain->faults += (uint64_t)step->minor_faults + step->major_faults;
}

void explain__take_step(struct explain *explain, const struct fbt_step *step)
{
	add_faults(explain, step);
	if (explain->live->options->explain != EXPLAIN_ALWAYS || !step->kind || explain->load_err)
		return;
	/* Only a step that was slow takes the place of another thread. */
	if (explain->counted.count < WANTED_MAX)
		want_faults(explain, step->tid, step->end_ns);
	if (explain->sampled.count < WANTED_MAX)
		want_samples(explain, step->tid, step->end_ns);
}

/* From now on it is looked at who takes its CPU. Threads that compute usually are looked at anyway.
 */
static void watch_thread(struct explain *explain, uint32_t tid)
{
	struct shared *shared = loader__shared(explain->live->loader);
	const volatile struct fbt_slot *slot = shared_slot_of(shared, tid);

	if (slot)
		shared->slots[slot - shared->slots].is_awaited = 1;
}

void explain__note(struct explain *explain, const struct step *step,
		   const struct escalation *escalation)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	enum fbt_explain kind;
	bool is_explained;

	/* A step that is slow for something else too is no reason to look at so little. */
	if (escalation->cause.time_ns < step_total_ns(step) / WORTH_PART)
		return;
	if (explain->live->options->explain == EXPLAIN_OFF ||
	    !cause_explained_by(&escalation->cause, &kind, &is_explained))
		return;
	if (kind == FBT_EXPLAIN_SWITCHES && cause_is_of_other(&escalation->cause))
		watch_thread(explain, escalation->cause.waker.tid);
	if (kind == FBT_EXPLAIN_SAMPLES)
		want_samples(explain, step->record.tid, now_ns);
	if (kind == FBT_EXPLAIN_FAULTS)
		want_faults(explain, step->record.tid, now_ns);
	demand_want(&explain->demands[kind], is_explained, now_ns);
}

/* With the first digits that are not 0: most prices are below 0.1 %. */
static const char *format_share(char text[FORMAT_MAX], uint64_t ppm)
{
	snprintf(text, FORMAT_MAX, "%.2g %%", (double)ppm / PPM_PER_PERCENT);
	return text;
}

static void tell(const struct explain *explain, enum fbt_explain kind, enum demand_act act)
{
	const struct demand *demand = &explain->demands[kind];
	const struct demand_limits *limits = &explain->limits[kind];
	const char *price = PERCENT(demand->price_ppm), *limit = PERCENT(limits->limit_ppm);

	switch (act) {
	case DEMAND_ARM:
		log_info("%s is looked at from now on, for about %s of the machine's CPU time: the "
			 "next such step will be explained",
			 subjects[kind], price);
		break;
	case DEMAND_DISARM:
		log_info("%s is no longer looked at: no step has needed it for %s", subjects[kind],
			 FORMAT_TIME(limits->idle_ns));
		break;
	case DEMAND_REFUSE:
		log_info("%s is not looked at: that would take %s of the machine's CPU time, more "
			 "than %s (--explain always does it all the same)",
			 subjects[kind], price, limit);
		break;
	case DEMAND_GIVE_UP:
		log_info("%s is no longer looked at: by now that takes %s of the machine's CPU "
			 "time, more than %s (--explain always does it all the same)",
			 subjects[kind], price, limit);
		break;
	case DEMAND_NOTHING:
		break;
	}
}

static void act_on(struct explain *explain, enum fbt_explain kind, enum demand_act act)
{
	if (act == DEMAND_ARM && !attach(explain, kind))
		return;
	if (act == DEMAND_DISARM || act == DEMAND_GIVE_UP)
		detach(explain, kind);
	/* Later ones may be others, and fewer, which costs less. */
	if (act != DEMAND_NOTHING && act != DEMAND_ARM && kind == FBT_EXPLAIN_SAMPLES)
		explain->sampled.count = 0;
	if (act != DEMAND_NOTHING && act != DEMAND_ARM && kind == FBT_EXPLAIN_FAULTS)
		explain->counted.count = 0;
	tell(explain, kind, act);
}

/* Its price is known without a look at the machine: so many a second of each thread. */
static void turn_samples(struct explain *explain, uint64_t now_ns)
{
	struct demand *demand = &explain->demands[FBT_EXPLAIN_SAMPLES];

	explain->samples += (double)sub_saturating(now_ns, explain->turn_ns) / NS_PER_S *
			    SAMPLER_HZ * explain->sampled.count;
	explain->turn_ns = now_ns;
	act_on(explain, FBT_EXPLAIN_SAMPLES,
	       demand_turn(demand, &explain->limits[FBT_EXPLAIN_SAMPLES], now_ns,
			   (uint64_t)explain->samples));
}

void explain__turn(struct explain *explain, uint64_t now_ns)
{
	uint64_t count = 0;
	bool known = false;

	drop_ended(explain);
	for (size_t i = 0; i < MACHINE_WIDE; i++) {
		enum fbt_explain kind = machine_wide[i];
		struct demand *demand = &explain->demands[kind];
		int err = 0;

		if (demand_needs_count(demand, &explain->limits[kind], now_ns) && !known) {
			err = machine_switches(&count);
			known = !err;
		}
		/* Without a rate there is no price. */
		if (err && explain->limits[kind].limit_ppm) {
			detach(explain, kind);
			fail(explain, kind, err);
			continue;
		}
		act_on(explain, kind, demand_turn(demand, &explain->limits[kind], now_ns, count));
	}
	turn_samples(explain, now_ns);
	act_on(explain, FBT_EXPLAIN_FAULTS,
	       demand_turn(&explain->demands[FBT_EXPLAIN_FAULTS],
			   &explain->limits[FBT_EXPLAIN_FAULTS], now_ns, explain->faults));
}

static void send(const struct explain *explain, enum fbt_explain kind)
{
	const struct demand *demand = &explain->demands[kind];
	struct fbt_explained record = {
		.kind = kind,
		.state = demand->state,
		.missed = demand->missed,
		.armed_ns = demand->armed_ns,
		.events = demand->events,
		.event_ps = explain->limits[kind].event_ps,
		.price_ppm = demand->price_ppm,
		.limit_ppm = explain->limits[kind].limit_ppm,
	};

	if (demand->missed || demand->state != FBT_EXPLAIN_UNUSED)
		record_send(explain->live->output, &record, sizeof(record), FBT_EVENT_EXPLAIN);
}

static void send_lost(const struct explain *explain)
{
	struct fbt_explain_lost record = {.count = {0}};
	bool any = false;

	for (int kind = 0; kind < FBT_EXPLAIN_COUNT; kind++) {
		record.count[kind] =
			sub_saturating(lost_so_far(explain, kind), explain->lost_before[kind]);
		any |= record.count[kind] != 0;
	}
	if (any)
		record_send(explain->live->output, &record, sizeof(record), FBT_EVENT_EXPLAIN_LOST);
}

void explain__send_totals(const struct explain *explain)
{
	for (int kind = 0; kind < FBT_EXPLAIN_COUNT; kind++)
		send(explain, (enum fbt_explain)kind);
	send_lost(explain);
}

void explain__finish(struct explain *explain, uint64_t now_ns)
{
	uint64_t count = 0;

	for (size_t i = 0; i < MACHINE_WIDE; i++) {
		struct demand *demand = &explain->demands[machine_wide[i]];

		if (demand->state != FBT_EXPLAIN_ARMED)
			continue;
		if (!count && machine_switches(&count))
			count = demand->look_events;
		detach(explain, machine_wide[i]);
		demand_finish(demand, now_ns, count);
	}
	sampler_clear(&explain->sampler);
	clear_faults(explain);
	demand_finish(&explain->demands[FBT_EXPLAIN_SAMPLES], now_ns, (uint64_t)explain->samples);
	demand_finish(&explain->demands[FBT_EXPLAIN_FAULTS], now_ns, explain->faults);
	explain__send_totals(explain);
}
