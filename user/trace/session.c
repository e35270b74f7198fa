/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/calibrate.h"
#include "kernel/faults.h"
#include "kernel/loader.h"
#include "stream/stream.h"
#include "model/syscalls.h"
#include "proc/cpus.h"
#include "proc/process.h"
#include "shim/library.h"
#include "shim/peers.h"
#include "trace/command.h"
#include "targets/engine_tree.h"
#include "trace/explain.h"
#include "search/hint.h"
#include "targets/late_engines.h"
#include "targets/late_files.h"
#include "trace/loading.h"
#include "trace/wall_clock.h"
#include "targets/rewritten.h"
#include "targets/selection.h"
#include "targets/step_guard.h"
#include "targets/step_sites.h"
#include "targets/steps_found.h"
#include "targets/text_check.h"

/* Time counts up to the boundary; a call counts in the interval in which it returns. */
static void add_row(struct fbt_sum *sum, const struct process_sums *now,
		    const struct process_sums *before, uint32_t nr)
{
	uint64_t ns = sub_saturating(now->rows[nr].ns + now->open_ns[nr],
				     before->rows[nr].ns + before->open_ns[nr]);

	sum->ns += ns;
	sum->calls += sub_saturating(now->rows[nr].calls, before->rows[nr].calls);
	sum->errors += sub_saturating(now->rows[nr].errors, before->rows[nr].errors);
	/*
	 * max_ns is the maximum of the window so far; that of the interval is known only if it has
	 * grown.
	 */
	if (now->rows[nr].max_ns > before->rows[nr].max_ns && now->rows[nr].max_ns > sum->max_ns)
		sum->max_ns = now->rows[nr].max_ns;
}

/* A wait counts up to the boundary, and never more than the calls of futex together. */
static void send_stalls(const struct fbt_step *step, const struct process_sums *now,
			const struct process_sums *before, const struct record_output *output)
{
	const struct fbt_slot_stalls *to = &now->stalls, *from = &before->stalls;
	struct fbt_stalls stalls = {
		.tgid = step->tgid,
		.tid = step->tid,
		.start_ns = step->start_ns,
		.gil_ns =
			min_u64(sub_saturating(to->gil_ns, from->gil_ns), step->sums[FBT_FUTEX].ns),
		.gc_ns = sub_saturating(to->gc_ns, from->gc_ns),
		.gc_longest_ns = now->gc_longest >> FBT_GC_SHIFT,
		.gil_waits = (uint32_t)sub_saturating(to->gil_waits, from->gil_waits),
		.gc_count = (uint32_t)sub_saturating(to->gc_count, from->gc_count),
		.gc_generation = now->gc_longest & ((1u << FBT_GC_SHIFT) - 1),
	};

	if (stalls.gil_ns || stalls.gc_ns || stalls.gc_count)
		record_send(output, &stalls, sizeof(stalls), FBT_EVENT_STALLS);
}

static void send_step(const struct traced *traced, const struct process_sums *now, uint64_t now_ns,
		      bool truncated, const struct record_output *output)
{
	const struct process_sums *before = traced->previous;
	uint64_t syscall_ns = 0;
	struct fbt_step step = {
		.header.flags = FBT_STEP_NO_GAP | FBT_STEP_OTHER_UNKNOWN | FBT_STEP_SCHED_UNKNOWN,
		.tgid = traced->tgid,
		.tid = traced->tgid,
		.end = truncated ? FBT_END_TRUNCATED : FBT_END_RETURN,
		.start_ns = traced->previous_ns,
		.end_ns = now_ns,
		.thread_ns = sub_saturating(now->thread_ns, before->thread_ns),
		.threads = now->threads,
	};

	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++)
		add_row(&step.sums[syscall_category(syscalls_arch(), nr)], now, before, nr);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		syscall_ns += step.sums[i].ns;
	/* A call and its thread are cut off at slightly different times. */
	if (step.thread_ns < syscall_ns)
		step.thread_ns = syscall_ns;
	send_stalls(&step, now, before, output);
	record_send(output, &step, sizeof(step), FBT_EVENT_STEP);
}

/* Without memory it begins at the next boundary. */
void interval_begin(struct traced *traced, uint64_t start_ns, bool is_part)
{
	if (traced->previous)
		return;
	traced->previous = calloc(1, sizeof(*traced->previous));
	traced->previous_ns = start_ns;
	traced->is_part = is_part;
}

int interval_send(struct traced_set *set, struct traced *traced, uint64_t now_ns, bool truncated,
		  const struct record_output *output)
{
	struct process_sums *now = malloc(sizeof(*now));

	if (!now)
		return -ENOMEM;
	traced_set__sum(set, traced, now_ns, now);
	if (traced->previous)
		send_step(traced, now, now_ns, truncated || traced->is_part, output);
	traced->is_part = false;
	traced->ended.gc_longest = 0;
	free(traced->previous);
	traced->previous = now;
	traced->previous_ns = now_ns;
	return 0;
}

/*
 * interval_send for all processes, until steps_max steps have been sent (0: no limit). Sets the
 * next boundary.
 */
static void send_all_intervals(struct intervals *intervals, struct traced_set *set, uint64_t now_ns,
			       bool truncated, uint64_t steps_max,
			       const struct record_output *output)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(set, i)); i++) {
		if (steps_max && intervals->steps >= steps_max)
			return;
		intervals->steps += traced->previous != NULL;
		if (interval_send(set, traced, now_ns, truncated, output))
			log_warn("process %u: no memory for an interval", traced->tgid);
	}
	/* A late boundary does not shift the next ones. */
	while (intervals->next_ns <= now_ns)
		intervals->next_ns += intervals->length_ns;
}

/*
 * COMMAND has just been executed, or is at its first instruction: what was before that is in no
 * interval.
 */
static void begin_at_command(struct intervals *intervals, struct traced_set *set, uint64_t now_ns,
			     const struct record_output *output)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(set, i)); i++) {
		free(traced->previous);
		traced->previous = NULL;
		(void)interval_send(set, traced, now_ns, false, output);
	}
	intervals->next_ns = now_ns + intervals->length_ns;
}

#define RESCAN_NS NS_PER_S
/* When to search for candidates if there was no step. */
#define HINT_NS 5000000000ull
/* Time for handlers that are still running when their probe is detached; 100 ns would do. */
#define SETTLE_US 1000

struct session {
	struct live live;
	struct step_guard *guard;
	struct explain *explain;
	struct child *child;
	struct launch *launch;
	struct fbt_cost cost;
	bool cost_known; /* given to session__open; else session__start measures it */
	bool told;	 /* session__open was quiet: earlier windows have told the user */
	uint64_t start_ns;
	uint64_t start_cpu_ns;
	uint64_t fault_ps;  /* fbt_window.fault_ps */
	uint64_t rescan_ns; /* when to search for new files next */
	bool has_new;	    /* a process to search in before that */
	uint64_t clock_ns;  /* when to look at the time of day next */
	struct wall_clock wall_clock;
	struct intervals intervals;
	uint64_t lost_threads; /* as of the last rescan */
	struct late_files late_files;
	struct rewritten rewritten;
	struct hint_wait hint;
	struct text_check text_check;
	VEC(struct torch_export) torch; /* to be given away */
	struct gpu_link *gpu;
	int gpu_err; /* --gpu require was not met */
};

static void take_site(void *ctx, const struct fbt_ring_site *site)
{
	const struct session *session = ctx;

	step_sites__take(session->live.sites, site);
}

static void take_step(void *ctx, const struct fbt_step *step)
{
	struct session *session = ctx;

	text_check_take(&session->text_check, step);
	engine_tree__take(session->live.tree, step);
	explain__take_step(session->explain, step);
}

static uint16_t more_flags(void *ctx, const struct fbt_step *step)
{
	const struct session *session = ctx;

	return steps_found__is_profiled(session->live.found, step) ? FBT_STEP_PROFILED : 0;
}

/* Takes a process that -f or -a found, or that called execve. Either way its files are new. */
static void take_announced(void *ctx, const struct fbt_target *target)
{
	struct process_text text;
	struct session *session = ctx;
	struct traced *traced = traced_set__add(session->live.traced, target->tgid);

	if (!traced) {
		log_warn("process %u: no memory to follow it", target->tgid);
		return;
	}
	step_sites__forget(session->live.sites, target->tgid);
	steps_found__forget(session->live.found, target->tgid);
	/* A link for one process is bound to its first thread, which is gone. */
	if (target->header.flags & FBT_TARGET_NEW_LEADER)
		steps_found__detach(traced, true);
	if (!traced->taken) {
		traced->parent_tgid = target->parent_tgid;
		traced->start_ns = target->start_ns;
		traced->taken = true;
		if (session->intervals.next_ns && session__is_attached(session))
			interval_begin(traced, traced->start_ns, true);
	} else {
		target_seen__restart(traced->seen);
	}
	traced->wanted |= target->tgid == session__main_tgid(session);
	traced->rescan = true;
	session->has_new = true;
	process_text_read(&text, traced->tgid);
	record_send_target(session->live.output, traced->tgid, traced->parent_tgid,
			   traced->start_ns, &text);
	gpu_link__take(session->gpu, traced->tgid, clock_ns(CLOCK_MONOTONIC));
	late_engines__expect(session->live.late, traced->tgid);
}

/* A shim that collects already would be armed a second time, and CUPTI misnumbers graphs then. */
static void take_engine(void *ctx, uint32_t tgid, bool is_new)
{
	struct session *session = ctx;

	session->intervals.next_ns = 0;
	if (is_new)
		gpu_link__take(session->gpu, tgid, clock_ns(CLOCK_MONOTONIC));
}

/* COMMAND loads the shim when it first uses CUDA. */
static int start_command(struct session *session)
{
	char *shim = session->live.options->gpu.mode == GPU_OFF ? NULL : gpu_shim_path();
	int err = child__start(&session->child, session->live.options->command, shim);

	free(shim);
	return err;
}

static struct stream *new_stream(struct session *session)
{
	const struct options *options = session->live.options;
	struct cpus tickless;
	const struct stream_options stream_options = {
		.detail = options->detail,
		.steps_max = options->steps,
		.hang_ns = options->hang_ns,
		.symbols = options_symbols(options),
		/* A later window is opened when the tool is confined already. */
		.asks_sockets = !options->windows.flag,
		.is_tickless = cpus_find_tickless(&tickless),
		.on_process = take_announced,
		.on_site = take_site,
		.on_step = take_step,
		.more_flags = more_flags,
		.scripts = steps_found__scripts(session->live.found),
		.ctx = session,
	};

	return stream__new(session->live.loader, session->live.traced, session->live.output,
			   &stream_options);
}

static bool add_guards(struct session *session)
{
	session->guard = step_guard__new(&session->live, loader__shared(session->live.loader),
					 loader__has_multi(session->live.loader));
	session->explain = explain__new(&session->live);
	return session->guard && session->explain;
}

int session__open(struct session **result, const struct options *options,
		  const struct record_output *output, const struct fbt_cost *cost, bool quiet)
{
	struct session *session = calloc(1, sizeof(*session));
	int err = -ENOMEM;

	if (!session)
		return err;
	session->live = (struct live){.options = options, .output = output, .quiet = quiet};
	session->intervals.length_ns = options->interval_ns;
	session->cost_known = cost;
	session->told = quiet;
	if (cost)
		session->cost = *cost;
	session->fault_ps = calibrate_fault_ps();
	/* COMMAND keeps the limit of the shell. Later windows have the one of the first. */
	if (!cost && !options->command)
		loading_raise_files_limit();
	err = loading_open(&session->live.loader, options);
	if (err)
		goto out;
	err = -ENOMEM;
	session->live.traced = traced_set__new(loader__shared(session->live.loader), output);
	session->live.found = steps_found__new(&session->live);
	session->text_check.found = session->live.found;
	session->live.tree = engine_tree__new(&session->live);
	session->live.late = late_engines__new(&session->live, take_engine, session);
	if (!session->live.traced || !session->live.found || !session->live.tree ||
	    !session->live.late)
		goto out;
	err = gpu_link__open(&session->gpu, options->gpu.mode, options->gpu.inject_timeout_ns,
			     output);
	if (err)
		goto out;
	err = -ENOMEM;
	session->live.stream = new_stream(session);
	session->live.sites = step_sites__new(&session->live);
	if (!session->live.stream || !session->live.sites)
		goto out;
	if (!add_guards(session))
		goto out;
	session->live.may_inject = !quiet;
	err = selection_find(&session->live);
	session->live.may_inject = false;
	if (!err && options->command)
		err = start_command(session);
	if (!err && options->command)
		loading_raise_files_limit();
	session->live.quiet = false;
out:
	if (err) {
		session__free(session);
		session = NULL;
	}
	*result = session;
	return err;
}

uint32_t session__main_tgid(const struct session *session)
{
	if (session->child)
		return (uint32_t)child__pid(session->child);
	return session->live.options->pids.count ? session->live.options->pids.items[0] : 0;
}

bool session__has_several(const struct session *session)
{
	const struct options *options = session->live.options;

	return options->all || options->follow || traced_set__count(session->live.traced) > 1;
}

struct child *session__take_command(struct session *session)
{
	struct child *child = session->child;

	session->child = NULL;
	return child;
}

void session__free(struct session *session)
{
	if (!session)
		return;
	launch__free(session->launch);
	child__free(session->child);
	hint_wait_end(&session->hint);
	gpu_link__free(session->gpu);
	step_guard__free(session->guard);
	explain__free(session->explain);
	step_sites__free(session->live.sites);
	stream__free(session->live.stream);
	late_engines__free(session->live.late);
	engine_tree__free(session->live.tree);
	steps_found__free(session->live.found);
	if (session->live.traced && session->live.loader)
		traced_set__give_probes(session->live.traced,
					loader__uprobes(session->live.loader));
	traced_set__free(session->live.traced);
	loader__free(session->live.loader);
	vec_free(&session->torch);
	free(session);
}

static int send_window(struct session *session, const char *tag)
{
	uint64_t offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	bool is_strict = session->live.options->judging.merge.strict;
	struct fbt_window window = {
		.header.flags = is_strict ? FBT_WINDOW_GPU_STRICT : 0,
		.start_ns = session->start_ns,
		.realtime_ns = session->start_ns + offset_ns,
		.detail = session->live.options->detail,
		.arch = syscalls_arch(),
		.interval_ns = session->intervals.next_ns ? session->live.options->interval_ns : 0,
		.fault_ps = session->fault_ps,
		.call_ps = session->cost.call_ps,
	};

	session->wall_clock.offset_ns = offset_ns;
	return record_send_window(session->live.output, &window, tag);
}

static int send_options(const struct session *session)
{
	const struct options *options = session->live.options;

	if (!options->judging_given.count)
		return 0;
	return record_send_options(session->live.output,
				   (const char *const *)options->judging_given.items,
				   options->judging_given.count);
}

/* A window may be open for weeks, and its times of day must stay right. */
static void look_at_clock(struct session *session, uint64_t now_ns)
{
	struct fbt_clock clock = {.header.flags = 0};

	if (now_ns < session->clock_ns)
		return;
	session->clock_ns = now_ns + NS_PER_S;
	clock.time_ns = clock_ns(CLOCK_MONOTONIC);
	clock.realtime_ns = clock_ns(CLOCK_REALTIME);
	if (wall_clock_take(&session->wall_clock, clock.time_ns, clock.realtime_ns,
			    clock_ns(CLOCK_MONOTONIC)))
		record_send(session->live.output, &clock, sizeof(clock), FBT_EVENT_CLOCK);
}

/* The request is sent after the steps that have already ended. */
void session__escalate(struct session *session)
{
	stream__drain(session->live.stream);
	record_send_manual(session->live.output, clock_ns(CLOCK_MONOTONIC));
}

void session__note_escalation(struct session *session, const struct step *step,
			      const struct escalation *escalation)
{
	explain__note(session->explain, step, escalation);
}

static int attach_kernel_side(struct session *session)
{
	bool with_steps = steps_found__count(session->live.found);
	int err = calibrate_faults(session->live.loader, &session->cost);

	/* Where this is refused to the tool for itself, no thread is tried later. */
	if (!session->told)
		fault_events_tell(err);
	if (session->cost_known) {
		err = loader__attach_syscalls(session->live.loader);
	} else {
		err = loading_attach_syscalls(session->live.loader, with_steps, &session->cost);
		stream__discard(session->live.stream);
	}
	return err ? err : loader__attach_threads(session->live.loader);
}

void session__refresh(struct session *session)
{
	selection_refresh(&session->live);
}

bool session__has_room(const struct session *session)
{
	return loading_has_room(session->live.loader, session->live.options);
}

static int take_gpu(struct session *session)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(session->live.traced, i)); i++)
		gpu_link__take(session->gpu, traced->tgid, now_ns);
	gpu_link__poll(session->gpu, now_ns);
	return gpu_link__check(session->gpu, session->child);
}

static void time_faults(struct session *session)
{
	const struct fault_options options = {
		.fault_ps = session->fault_ps,
		.timing_ps = session->cost.fault_ps,
		.share = session->live.options->windows.rate_guard_percent / 100,
	};

	if (options.timing_ps)
		stream__time_faults(session->live.stream, &options);
}

int session__start(struct session *session, const char *tag)
{
	struct traced *traced;
	int err;

	session->start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	session->live.is_open = true;
	err = attach_kernel_side(session);
	if (!err)
		err = selection_attach(&session->live);
	time_faults(session);
	session->start_ns = clock_ns(CLOCK_MONOTONIC);
	session->hint.due_ns = session->start_ns + HINT_NS;
	/* An interval is made of calls: without them it would be empty. */
	if (!steps_found__is_probing(session->live.found) &&
	    session->live.options->detail != FBT_DETAIL_PROBES)
		session->intervals.next_ns = session->start_ns + session->intervals.length_ns;
	else if (session->live.options->interval_given && !session->told)
		log_warn("--interval has no effect: steps are the calls of a step function");
	err = err ? err : send_window(session, tag);
	err = err ? err : send_options(session);
	err = err ? err : steps_found__describe(session->live.found);
	err = err ? err : selection_take(&session->live);
	for (size_t i = 0; session->intervals.next_ns && !session->child &&
			   (traced = traced_set__at(session->live.traced, i));
	     i++)
		interval_begin(traced, traced->start_ns, false);
	/* What of Python is measured is sent before the first step is. */
	if (!err)
		steps_found__beat(session->live.found, clock_ns(CLOCK_MONOTONIC));
	err = err ? err : take_gpu(session);
	/* Sent now, when the exports of all processes are open. */
	if (!err && session->live.options->escalate_now)
		record_send_manual(session->live.output, clock_ns(CLOCK_MONOTONIC));
	stream__forget_early_begins(session->live.stream);
	if (!err)
		explain__begin(session->explain);
	if (!err && session->live.options->torch.is_on)
		steps_found__begin_torch(session->live.found);
	if (!err && session->child) {
		err = launch__new(&session->launch, session->live.loader,
				  session__main_tgid(session));
		if (!err)
			err = child__release(session->child);
	}
	if (err)
		loader__detach(session->live.loader);
	return err;
}

bool session__is_attached(const struct session *session)
{
	return !session->launch || launch__is_done(session->launch);
}

/*
 * Searches files that were mapped since the last time for step functions, and says what was missed.
 * Nothing, if a COMMAND has not run since it mapped the file, or the process has just appeared.
 */
static void search_again(struct session *session, struct traced *traced)
{
	bool is_new = traced->rescan, has_run;
	int probed;

	if (steps_found__search(session->live.found, traced) < 0 ||
	    steps_found__describe(session->live.found))
		return;
	probed = step_sites__attach(session->live.sites, traced);
	if (probed <= 0)
		return;
	has_run = !is_new && !(session->launch && launch__is_stopped(session->launch));
	if (has_run || session->intervals.next_ns)
		log_info("found a step function%s%s",
			 session->intervals.next_ns ? "; it replaces the intervals" : "",
			 !has_run ? ""
			 : session->live.options->all
				 ? "; its calls before that were not traced"
				 : "; its calls in the second before were not traced");
	session->intervals.next_ns = 0;
}

/* With -a, there are too many processes to read the mappings of all of them every second. */
static void search_late(struct session *session, uint64_t now_ns)
{
	struct traced_set *set = session->live.traced;
	struct traced *traced;

	if (!session->live.options->all || !late_files_begin(&session->late_files, set, now_ns))
		return;
	while ((traced = late_files_next(&session->late_files, set, clock_ns(CLOCK_MONOTONIC))))
		search_again(session, traced);
}

/* is_due: in all processes; else in new ones. An engine may start compilers all the time. */
static void rescan(struct session *session, bool is_due, uint64_t now_ns)
{
	uint64_t lost = stream__lost_threads(session->live.stream) +
			loader__missed_forks(session->live.loader);
	bool exits_missed = loader__missed_exits(session->live.loader) != 0;
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(session->live.traced, i)); i++) {
		if (traced->taken && (traced->missing || lost != session->lost_threads))
			traced_set__take_threads(session->live.traced, traced->tgid, now_ns);
		if (exits_missed)
			traced_set__end_gone(session->live.traced, traced, now_ns);
		if (kill((pid_t)traced->tgid, 0) && errno == ESRCH)
			traced_set__end_slots(session->live.traced, traced, now_ns);
		else if (traced->rescan || (is_due && !session->live.options->all))
			search_again(session, traced);
	}
	search_late(session, now_ns);
	session->lost_threads = lost;
	session->has_new = false;
	if (is_due)
		session->rescan_ns = now_ns + RESCAN_NS;
}

static void send_intervals(struct session *session, uint64_t now_ns, bool truncated)
{
	send_all_intervals(&session->intervals, session->live.traced, now_ns, truncated,
			   session->live.options->steps, session->live.output);
}

/*
 * Threads without a slot may still be alive: rescan() tries again, not each poll. So may those of a
 * process whose threads cannot be listed, without a descriptor say.
 */
static bool may_live(struct session *session, struct traced *traced)
{
	int live;

	if (traced->live_threads || traced->missing)
		return true;
	if (!traced->taken)
		return false;
	live = traced_set__take_threads(session->live.traced, traced->tgid,
					clock_ns(CLOCK_MONOTONIC));
	if (live > 0)
		traced->live_threads = (uint32_t)live;
	return traced->live_threads || traced->missing || (live < 0 && live != -ESRCH);
}

static void send_last_interval(struct session *session, struct traced *traced)
{
	uint64_t most = session->live.options->steps;

	if (most && session->intervals.steps >= most)
		return;
	session->intervals.steps += traced->previous != NULL;
	interval_send(session->live.traced, traced, clock_ns(CLOCK_MONOTONIC), true,
		      session->live.output);
}

static void remove_ended(struct session *session)
{
	struct traced *traced;
	size_t i = 0;

	while ((traced = traced_set__at(session->live.traced, i))) {
		if (may_live(session, traced)) {
			i++;
			continue;
		}
		if (session->intervals.next_ns)
			send_last_interval(session, traced);
		gpu_link__end(session->gpu, traced->tgid, clock_ns(CLOCK_MONOTONIC));
		step_sites__forget(session->live.sites, traced->tgid);
		steps_found__forget(session->live.found, traced->tgid);
		loader__remove_target(session->live.loader, traced->tgid);
		traced_set__remove(session->live.traced, traced, clock_ns(CLOCK_MONOTONIC));
	}
}

/* A server's own loop is a future that began long ago. */
static void tell_late_polls(const struct session *session)
{
	uint64_t polls = stream__late_polls(session->live.stream);
	bool none = !stream__has_steps(session->live.stream);

	if (polls && none)
		log_warn("%llu polls were seen, all of futures that began before: they are no "
			 "steps, because those are whole futures. If the function runs as long as "
			 "the server, --step of one that it awaits or calls has steps",
			 (unsigned long long)polls);
}

/* Whether it is time to name candidates. With -a, of which process would they be? */
static bool lacks_steps(struct session *session, uint64_t now_ns)
{
	bool all = session->live.options->all;

	if (!hint_wait_turn(&session->hint, now_ns))
		return false;
	tell_late_polls(session);
	if (stream__has_steps(session->live.stream) || step_guard__has_acted(session->guard))
		return false;
	if (all && !session->told)
		log_info("no step was seen yet in any process: ferrum-bpftrace doctor lists the "
			 "engines that run here, and doctor PID says what a process lacks");
	return !all;
}

void session__poll(struct session *session)
{
	const struct traced *first;
	uint64_t now_ns;
	bool stopped, is_due;

	stream__drain(session->live.stream);
	stream__send_lost(session->live.stream);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	look_at_clock(session, now_ns);
	steps_found__beat(session->live.found, now_ns);
	step_guard__give_up(session->guard,
			    rewritten_turn(&session->rewritten, &session->live, now_ns), now_ns);
	late_engines__turn(session->live.late, now_ns);
	step_sites__turn(session->live.sites, now_ns);
	step_guard__turn(session->guard, now_ns, &session->cost);
	explain__turn(session->explain, now_ns);
	/* COMMAND has no intervals before its own first instruction. */
	if (session->intervals.next_ns && session->launch && !launch__is_done(session->launch))
		session->intervals.next_ns = now_ns;
	else if (session->intervals.next_ns && now_ns >= session->intervals.next_ns)
		send_intervals(session, now_ns, false);
	remove_ended(session);
	stopped = session->launch && launch__is_stopped(session->launch);
	is_due = stopped || now_ns >= session->rescan_ns;
	if (is_due || session->has_new)
		rescan(session, is_due, now_ns);
	if (stopped && session->intervals.next_ns)
		begin_at_command(&session->intervals, session->live.traced,
				 clock_ns(CLOCK_MONOTONIC), session->live.output);
	if (stopped)
		launch__continue(session->launch);
	first = traced_set__at(session->live.traced, 0);
	if (lacks_steps(session, now_ns) && first)
		session->hint.hint = hint__begin(session->live.options, first->tgid, hint_look);
	gpu_link__poll(session->gpu, now_ns);
	/* COMMAND may start to use CUDA at any time while it runs. */
	session->gpu_err = gpu_link__check(session->gpu, session->child);
}

void session__cost(const struct session *session, struct fbt_cost *cost)
{
	*cost = session->cost;
	calibrate_finish(cost, session->live.loader,
			 clock_ns(CLOCK_PROCESS_CPUTIME_ID) - session->start_cpu_ns,
			 stream__steps(session->live.stream));
}

bool session__is_over(const struct session *session)
{
	uint64_t steps = stream__steps(session->live.stream) + session->intervals.steps;

	if (session->gpu_err ||
	    (session->live.options->steps && steps >= session->live.options->steps))
		return true;
	return !session->live.options->all && !traced_set__at(session->live.traced, 0) &&
	       !loader__awaits_command(session->live.loader) &&
	       !late_engines__awaits(session->live.late);
}

static void send_probes(const struct session *session)
{
	uint32_t count = (uint32_t)steps_found__count(session->live.found);

	for (uint32_t kind = 1; kind <= count; kind++) {
		struct fbt_probes probes = {
			.kind = kind,
			.cost_ns = calibrate_kind_ns(&session->cost, session->live.loader, kind),
		};

		record_send(session->live.output, &probes, sizeof(probes), FBT_EVENT_PROBES);
	}
}

void session__send_totals(struct session *session)
{
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - session->start_cpu_ns;
	struct fbt_cost cost = session->cost;

	stream__send_lost(session->live.stream);
	stream__send_unseen(session->live.stream);
	stream__send_counts(session->live.stream);
	explain__send_totals(session->explain);
	send_probes(session);
	calibrate_finish(&cost, session->live.loader, cpu_ns, stream__steps(session->live.stream));
	steps_found__charge(session->live.found, &cost);
	record_send(session->live.output, &cost, sizeof(cost), FBT_EVENT_COST);
}

static void take_export(void *ctx, const struct torch_export *export)
{
	struct session *session = ctx;

	if (!vec_push(&session->torch, *export))
		return;
	close(export->execution_fd);
	close(export->kineto_fd);
}

void session__give_torch(struct session *session,
			 void (*take)(void *ctx, const struct torch_export *export), void *ctx)
{
	vec_for_each (export, &session->torch)
		take(ctx, export);
	session->torch.count = 0;
}

int session__finish(struct session *session)
{
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - session->start_cpu_ns;
	struct fbt_window_end end = {0};
	struct traced *traced;

	/* PyTorch's profiler ends with an armed function: collect_torch waits for that. */
	if (session->live.options->torch.is_on)
		steps_found__end_torch(session->live.found);
	else
		steps_found__disarm(session->live.found);
	loader__detach(session->live.loader);
	end.end_ns = clock_ns(CLOCK_MONOTONIC);
	usleep(SETTLE_US);
	step_guard__finish(session->guard, end.end_ns);
	step_sites__finish(session->live.sites);
	gpu_link__finish(session->gpu);
	stream__finish(session->live.stream, end.end_ns);
	if (session->intervals.next_ns)
		send_intervals(session, end.end_ns, true);
	for (size_t i = 0; (traced = traced_set__at(session->live.traced, i)); i++)
		traced_set__send_table(session->live.traced, traced, end.end_ns);
	cpu_ns += hint_wait_end(&session->hint);
	send_probes(session);
	explain__finish(session->explain, end.end_ns);
	calibrate_finish(&session->cost, session->live.loader, cpu_ns,
			 stream__steps(session->live.stream));
	steps_found__charge(session->live.found, &session->cost);
	record_send(session->live.output, &session->cost, sizeof(session->cost), FBT_EVENT_COST);
	record_send(session->live.output, &end, sizeof(end), FBT_EVENT_WINDOW_END);
	late_engines__finish(session->live.late);
	if (session->live.options->torch.is_on) {
		steps_found__collect_torch(session->live.found, take_export, session);
		steps_found__disarm(session->live.found);
	}
	if (session->child)
		child__report(session->child);
	return gpu_link__check(session->gpu, false);
}

uint64_t session__call_ps(const struct session *session)
{
	return session->cost.call_ps;
}

uint64_t session__probes_ns(const struct session *session)
{
	uint32_t count = (uint32_t)steps_found__count(session->live.found);
	uint64_t ns = 0;

	for (uint32_t kind = 1; kind <= count; kind++)
		ns = add_saturating(ns,
				    calibrate_kind_ns(&session->cost, session->live.loader, kind));
	return ns;
}
