/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/late_engines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "inject/python_use.h"
#include "proc/process.h"
#include "proc/status.h"
#include "python/guest.h"
#include "python/inject.h"
#include "python/tree.h"
#include "shim/library.h"
#include "targets/engine_tree.h"
#include "targets/selection.h"
#include "targets/step_sites.h"
#include "targets/steps_found.h"

/* How often it is looked whether a process has begun, and how often all are looked at. */
#define SCAN_NS	    NS_PER_S
#define SCAN_ALL_NS (60 * NS_PER_S)
/*
 * A process is looked at again after a part of its age, so what it loads is found late by that part
 * at most, and an engine that runs for long is hardly looked at.
 */
#define AGE_SHARE    8
#define PAUSE_MIN_NS NS_PER_S
#define PAUSE_MAX_NS (60 * NS_PER_S)
/* Processes that were found together are soon looked at at different times. */
#define SPREAD 16
/* What the looks of a turn may take, and one look: with -a, each process is a candidate. */
#define BUDGET_NS (5 * NS_PER_MS)
/* An interpreter that has just begun rarely waits in a call where its thread can be taken. */
#define SETTLE_NS (2 * NS_PER_S)
/* How often /proc is read of a process whose library does not answer; its page, in each turn. */
#define ORDERED_NS NS_PER_S
#define TRIES_MAX  5
#define LISTED_MAX 8

struct candidate {
	uint32_t tgid;
	uint64_t start_ticks; /* of the process: another one may get its number */
	uint64_t due_ns;      /* UINT64_MAX: the library is being injected */
	uint64_t ordered_ns;  /* the library has an order: until when only its page is read */
	uint32_t tries;	      /* to inject it */
	bool is_refused;      /* it cannot be injected */
};

struct late_engines {
	const struct live *live;
	void (*on_engine)(void *ctx, uint32_t tgid, bool is_new);
	void *ctx;
	VEC(struct candidate) candidates;
	size_t at;		       /* the candidate that is next */
	uint64_t scan_ns, scan_all_ns; /* when to do so next */
	uint32_t last_pid;	       /* processes_last() of the scan before */
	pid_vec ids;		       /* the processes that it found */
	struct inject *running;	       /* NULL: none */
	uint32_t tgid;		       /* of the running injection */
	uint64_t begin_ns;	       /* when processes were not searched yet */
};

struct late_engines *late_engines__new(const struct live *live,
				       void (*on_engine)(void *ctx, uint32_t tgid, bool is_new),
				       void *ctx)
{
	struct late_engines *late = calloc(1, sizeof(*late));

	if (!late)
		return NULL;
	late->live = live;
	late->on_engine = on_engine;
	late->ctx = ctx;
	late->begin_ns = clock_ns(CLOCK_MONOTONIC);
	return late;
}

void late_engines__free(struct late_engines *late)
{
	if (!late)
		return;
	inject__free(late->running);
	vec_free(&late->candidates);
	vec_free(&late->ids);
	free(late);
}

static bool is_on(const struct late_engines *late)
{
	return steps_found__wants_python(late->live->found);
}

static bool is_announced(const struct options *options)
{
	return options->follow || options->all || options->command;
}

static struct candidate *find(const struct late_engines *late, uint32_t tgid)
{
	vec_for_each (candidate, &late->candidates) {
		if (candidate->tgid == tgid)
			return candidate;
	}
	return NULL;
}

void late_engines__expect(struct late_engines *late, uint32_t tgid)
{
	struct candidate *known = find(late, tgid);
	struct candidate candidate = {.tgid = tgid,
				      .due_ns = clock_ns(CLOCK_MONOTONIC) + PAUSE_MIN_NS};
	struct thread_stat stat;

	if (!is_on(late) || (known && late->running && late->tgid == tgid) ||
	    thread_stat_read(&stat, (struct proc_ref){tgid, tgid}))
		return;
	candidate.start_ticks = stat.start_ticks;
	if (known)
		*known = candidate;
	else if (vec_push(&late->candidates, candidate))
		log_warn("process %u: no memory to look for Python steps in it", tgid);
}

static void expect_new(struct late_engines *late, uint32_t tgid)
{
	if (!find(late, tgid))
		late_engines__expect(late, tgid);
}

/* 0: it is gone, whatever has its number now. */
static uint64_t age_of(const struct candidate *candidate)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK), start_ns, now_ns;
	struct thread_stat stat;

	if (thread_stat_read(&stat, (struct proc_ref){candidate->tgid, candidate->tgid}) ||
	    stat.start_ticks != candidate->start_ticks)
		return 0;
	start_ns = stat.start_ticks * (NS_PER_S / ticks);
	now_ns = clock_ns(CLOCK_BOOTTIME);
	return now_ns > start_ns ? now_ns - start_ns : 1;
}

static uint64_t pause_of(uint64_t age_ns, uint32_t tgid)
{
	uint64_t pause_ns = age_ns / AGE_SHARE;

	if (pause_ns < PAUSE_MIN_NS)
		pause_ns = PAUSE_MIN_NS;
	else if (pause_ns > PAUSE_MAX_NS)
		pause_ns = PAUSE_MAX_NS;
	return pause_ns + pause_ns / (SPREAD * SPREAD) * (tgid % SPREAD);
}

static void expect_tree(struct late_engines *late, uint32_t tgid)
{
	process_vec members = {0};

	if (!python_tree_members(tgid, &members)) {
		vec_for_each (member, &members)
			expect_new(late, member->tgid);
	}
	vec_free(&members);
}

static bool is_among(const pid_vec *ids, uint32_t tgid)
{
	size_t low = 0, high = ids->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ids->items[middle] == tgid)
			return true;
		if (ids->items[middle] < tgid)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool is_expected(const struct late_engines *late, uint32_t tgid)
{
	const struct candidate *candidate = find(late, tgid);

	return candidate && age_of(candidate);
}

static void expect_child(struct late_engines *late, uint32_t tgid)
{
	struct thread_stat stat;

	if (!thread_stat_read(&stat, (struct proc_ref){tgid, tgid}) &&
	    is_expected(late, stat.parent_tgid))
		expect_new(late, tgid);
}

/* Looks only at those that were not there before: reading all of a machine's takes long. */
static void expect_children(struct late_engines *late)
{
	pid_vec ids = {0};

	if (processes_ids(&ids)) {
		vec_free(&ids);
		return;
	}
	vec_for_each (id, &ids) {
		if (!is_among(&late->ids, *id))
			expect_child(late, *id);
	}
	vec_free(&late->ids);
	late->ids = ids;
}

/* Those of -f and -a that are not known yet are announced. */
static void scan(struct late_engines *late, uint64_t now_ns)
{
	const struct options *options = late->live->options;
	uint32_t last_pid = processes_last();
	const struct traced *traced;

	if (last_pid == late->last_pid)
		return;
	for (size_t i = 0; !late->last_pid && (traced = traced_set__at(late->live->traced, i)); i++)
		expect_new(late, traced->tgid);
	late->last_pid = last_pid;
	if (is_announced(options))
		return;
	for (size_t i = 0; now_ns >= late->scan_all_ns && i < options->pids.count; i++)
		expect_tree(late, options->pids.items[i]);
	if (now_ns >= late->scan_all_ns)
		late->scan_all_ns = now_ns + SCAN_ALL_NS;
	expect_children(late);
}

static void inject(struct late_engines *late, struct candidate *candidate)
{
	char *path = python_library_path();
	struct inject_load load = python_inject_load(path);

	candidate->tries++;
	if (!path || inject__start(&late->running, candidate->tgid, &load,
				   late->live->options->gpu.inject_timeout_ns)) {
		late->running = NULL;
		candidate->is_refused = true;
	} else {
		late->tgid = candidate->tgid;
		candidate->due_ns = UINT64_MAX;
	}
	free(path);
}

static void poll_injection(struct late_engines *late, uint64_t now_ns)
{
	struct candidate *candidate = find(late, late->tgid);
	struct inject_outcome outcome;

	if (!late->running || !inject__poll(late->running, now_ns, &outcome))
		return;
	inject__free(late->running);
	late->running = NULL;
	if (!candidate)
		return;
	candidate->due_ns = now_ns;
	/* One that has ended is no candidate for long; one that has called execve is another
	 * program. */
	if ((outcome.status == INJECT_NO_THREAD || outcome.status == INJECT_GONE) &&
	    candidate->tries < TRIES_MAX)
		candidate->due_ns = now_ns + PAUSE_MIN_NS;
	else if (python_inject_judge(late->tgid, &outcome))
		candidate->is_refused = true;
}

/* true: the library is in the process. */
static bool has_library(struct late_engines *late, struct candidate *candidate, uint64_t age_ns)
{
	const struct options *options = late->live->options;

	if (python_guest_is_there(candidate->tgid))
		return true;
	if (options->python == PYTHON_INJECT && !options->all && !options->command &&
	    !candidate->is_refused && !late->running && age_ns >= SETTLE_NS)
		inject(late, candidate);
	return false;
}

static int trace_process(struct late_engines *late, struct traced *traced)
{
	const struct live *live = late->live;
	int added = steps_found__take_python(live->found, traced);
	int err;

	/* Its functions were refused, which was said. */
	if (added <= 0)
		return added ? added : -ENOENT;
	err = steps_found__describe(live->found);
	return err ? err : selection_take_late(live, traced);
}

static void take(struct late_engines *late, uint32_t tgid)
{
	struct traced *traced = traced_set__add(late->live->traced, tgid);
	bool is_new = traced && !traced->taken;
	struct thread_stat stat;
	int err = traced ? 0 : -ENOMEM;

	if (is_new && !thread_stat_read(&stat, (struct proc_ref){tgid, tgid}))
		traced->parent_tgid = stat.parent_tgid;
	err = err ? err : trace_process(late, traced);
	if (!err)
		err = engine_tree__join(late->live->tree, traced);
	if (!err) {
		steps_found__join_torch(late->live->found, tgid);
		late->on_engine(late->ctx, tgid, is_new);
		return;
	}
	if (err != -ESRCH && err != -ENOENT)
		log_warn("process %u: its Python steps cannot be traced: %s", tgid, strerror(-err));
	if (is_new && traced)
		traced_set__forget(late->live->traced, traced);
}

/* Looks at one process; false: it has ended. */
static bool look(struct late_engines *late, struct candidate *candidate, uint64_t now_ns)
{
	struct steps_found *steps = late->live->found;
	uint64_t age_ns;
	int found = -EAGAIN;

	if (now_ns < candidate->ordered_ns) {
		found = steps_found__look_python(steps, candidate->tgid);
		if (found == -EAGAIN)
			return true;
	}
	age_ns = age_of(candidate);
	candidate->due_ns = now_ns + pause_of(age_ns, candidate->tgid);
	candidate->ordered_ns = 0;
	if (!age_ns)
		return false;
	if (found == -EAGAIN) {
		if (!python_use_is_there(candidate->tgid) ||
		    python_tree_is_helper(candidate->tgid) || !has_library(late, candidate, age_ns))
			return true;
		found = steps_found__look_python(steps, candidate->tgid);
	}
	if (found == -EAGAIN) {
		candidate->due_ns = now_ns;
		candidate->ordered_ns = now_ns + ORDERED_NS;
	} else if (found > 0) {
		take(late, candidate->tgid);
	}
	return true;
}

/* Looks at those whose time has come, until the budget is spent; the next turn goes on there. */
static void look_in_turn(struct late_engines *late, uint64_t now_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + BUDGET_NS;
	bool has_looked = false;

	for (size_t left = late->candidates.count; left; left--) {
		struct candidate *candidate;
		uint32_t tgid;

		if (late->at >= late->candidates.count)
			late->at = 0;
		candidate = &late->candidates.items[late->at];
		tgid = candidate->tgid;
		if (now_ns < candidate->due_ns) {
			late->at++;
			continue;
		}
		if (has_looked && clock_ns(CLOCK_MONOTONIC) >= end_ns)
			return;
		has_looked = true;
		if (look(late, candidate, now_ns)) {
			late->at++;
			continue;
		}
		steps_found__forget(late->live->found, tgid);
		*candidate = late->candidates.items[--late->candidates.count];
		/* Another process of the engine may have its number. */
		expect_child(late, tgid);
	}
}

void late_engines__turn(struct late_engines *late, uint64_t now_ns)
{
	if (!is_on(late))
		return;
	if (now_ns >= late->scan_ns) {
		scan(late, now_ns);
		late->scan_ns = now_ns + SCAN_NS;
	}
	poll_injection(late, now_ns);
	look_in_turn(late, now_ns);
}

/* The confined tool may send no signal to a process of another user, not even 0. */
static bool is_running(uint32_t tgid)
{
	struct thread_stat stat;
	int err = thread_stat_read(&stat, processes_ref(tgid));

	return err ? err != -ESRCH : stat.state != 'Z' && stat.state != 'X';
}

bool late_engines__awaits(const struct late_engines *late)
{
	const struct options *options = late->live->options;

	if (!is_on(late) || !steps_found__has_python(late->live->found))
		return false;
	for (size_t i = 0; i < options->pids.count; i++) {
		if (is_running(options->pids.items[i]))
			return true;
	}
	return false;
}

static bool lacks_library(const struct late_engines *late, const struct candidate *candidate,
			  uint64_t now_ns)
{
	uint64_t age_ns = age_of(candidate);
	uint32_t tgid = candidate->tgid;

	return age_ns && age_ns < now_ns - late->begin_ns && python_use_is_there(tgid) &&
	       !python_tree_is_helper(tgid) && !python_guest_is_there(tgid);
}

void late_engines__finish(struct late_engines *late)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	char text[LISTED_MAX * (PYTHON_TITLE_MAX + 16)] = "", title[PYTHON_TITLE_MAX];
	size_t used = 0, count = 0;

	/* Where it was asked for, why it is not there has been said. */
	if (!is_on(late) || late->live->options->all ||
	    late->live->options->python == PYTHON_INJECT ||
	    !steps_found__has_python(late->live->found))
		return;
	scan(late, now_ns);
	vec_for_each (candidate, &late->candidates) {
		if (!lacks_library(late, candidate, now_ns) || count++ >= LISTED_MAX)
			continue;
		python_tree_title(candidate->tgid, title);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u (%s)",
					 used ? "; " : "", candidate->tgid, title);
	}
	if (count)
		log_info("not traced, because they began after the trace without "
			 "libferrum_python.so: %s%s: --python=inject traces them",
			 text, count > LISTED_MAX ? " and others" : "");
}
