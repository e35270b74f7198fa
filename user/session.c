/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "calibrate.h"
#include "child.h"
#include "clock.h"
#include "gpu_link.h"
#include "gpu_shim.h"
#include "hint.h"
#include "interval.h"
#include "launch.h"
#include "loader.h"
#include "loading.h"
#include "log.h"
#include "processes.h"
#include "selection.h"
#include "session.h"
#include "step_guard.h"
#include "steps_found.h"
#include "stream.h"
#include "syscalls.h"

#define RESCAN_NS 1000000000ull
/* Without a step for this long the user is told, once. */
#define HINT_NS 5000000000ull
/* Handlers that were running when their probe was detached need some 100 ns more. */
#define SETTLE_US 1000

struct session {
	const struct options *options;
	const struct record_output *output;
	struct loader *loader;
	struct traced_set *traced;
	struct steps_found *found;
	struct step_guard *guard;
	struct stream *stream;
	struct child *child;
	struct launch *launch;
	struct fbt_cost cost;
	bool cost_known; /* from before; else it is measured when the window begins */
	uint64_t start_ns;
	uint64_t start_cpu_ns;
	uint64_t fault_ps;  /* fbt_window.fault_ps */
	uint64_t rescan_ns; /* when to look for new files next */
	struct intervals intervals;
	uint64_t lost_threads; /* as of the last look */
	struct hint_wait hint;
	struct gpu_link *gpu;
	int gpu_err; /* --gpu require is not met */
};

static struct selection selection_of(const struct session *session)
{
	return (struct selection){
		.options = session->options,
		.loader = session->loader,
		.traced = session->traced,
		.found = session->found,
		.output = session->output,
	};
}

/* A process that --follow or -a found, or that called execve: its files are new either way. */
static void take_announced(void *ctx, const struct fbt_target *target)
{
	struct session *session = ctx;
	struct traced *traced = traced_set__add(session->traced, target->tgid);

	if (!traced) {
		log_warn("process %u: no memory to follow it", target->tgid);
		return;
	}
	/* Links of one process are bound to its first thread, which is gone. */
	if (target->header.flags & FBT_TARGET_NEW_LEADER)
		steps_found__detach(traced, true);
	if (!traced->taken) {
		traced->parent_tgid = target->parent_tgid;
		traced->start_ns = target->start_ns;
		traced->taken = true;
	}
	traced->wanted |= target->tgid == session__main_tgid(session);
	traced->rescan = true;
	session->rescan_ns = 0;
	record_send_target(session->output, traced->tgid, traced->parent_tgid, traced->start_ns);
	gpu_link__take(session->gpu, traced->tgid, clock_ns(CLOCK_MONOTONIC));
}

/* It loads the shim when it first uses CUDA. */
static int start_command(struct session *session)
{
	char *shim = session->options->gpu.mode == GPU_OFF ? NULL : gpu_shim_path();
	int err = child__start(&session->child, session->options->command, shim);

	free(shim);
	return err;
}

int session__open(struct session **result, const struct options *options,
		  const struct record_output *output, const struct fbt_cost *cost)
{
	struct session *session = calloc(1, sizeof(*session));
	struct selection selection;
	int err = -ENOMEM;

	if (!session)
		return err;
	session->options = options;
	session->intervals.length_ns = options->interval_ns;
	session->output = output;
	session->cost_known = cost;
	if (cost)
		session->cost = *cost;
	session->fault_ps = calibrate_fault_ps();
	err = loading_open(&session->loader, options);
	if (err)
		goto out;
	err = -ENOMEM;
	session->traced = traced_set__new(loader__shared(session->loader), output);
	session->found = steps_found__new(options, session->loader, output);
	if (!session->traced || !session->found)
		goto out;
	err = gpu_link__open(&session->gpu, &options->gpu, output);
	if (err)
		goto out;
	err = -ENOMEM;
	session->stream = stream__new(session->loader, session->traced, output,
				      &(struct stream_options){.detail = options->detail,
							       .steps_max = options->steps,
							       .on_process = take_announced,
							       .ctx = session});
	if (!session->stream)
		goto out;
	session->guard = step_guard__new(&(struct step_guard_parts){options, session->loader,
								    session->traced, session->found,
								    session->stream, output});
	if (!session->guard)
		goto out;
	selection = selection_of(session);
	err = selection_find(&selection);
	if (!err && options->command)
		err = start_command(session);
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
	return session->options->pids.count ? session->options->pids.items[0] : 0;
}

void session__free(struct session *session)
{
	if (!session)
		return;
	launch__free(session->launch);
	child__free(session->child);
	hint__free(session->hint.hint);
	gpu_link__free(session->gpu);
	step_guard__free(session->guard);
	stream__free(session->stream);
	steps_found__free(session->found);
	traced_set__free(session->traced);
	loader__free(session->loader);
	free(session);
}

static int send_window(struct session *session, const char *tag)
{
	struct fbt_window window = {
		.start_ns = session->start_ns,
		.realtime_ns =
			clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - session->start_ns),
		.detail = session->options->detail,
		.arch = syscalls_arch(),
		.interval_ns = session->intervals.next_ns ? session->options->interval_ns : 0,
		.fault_ps = session->fault_ps,
	};

	return record_send_window(session->output, &window, tag);
}

/* Sent behind the steps that ended before. */
void session__escalate(struct session *session)
{
	stream__drain(session->stream);
	record_send_manual(session->output, clock_ns(CLOCK_MONOTONIC));
}

static int attach_kernel_side(struct session *session)
{
	bool with_steps = steps_found__count(session->found);
	int err;

	if (session->cost_known) {
		err = loader__attach_syscalls(session->loader);
	} else {
		err = loading_attach_syscalls(session->loader, with_steps, &session->cost);
		stream__discard(session->stream);
	}
	return err ? err : loader__attach_threads(session->loader);
}

void session__refresh(struct session *session)
{
	struct selection selection = selection_of(session);

	selection_refresh(&selection);
}

bool session__has_room(const struct session *session)
{
	return loading_has_room(session->loader, session->options);
}

static int take_gpu(struct session *session)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(session->traced, i)); i++)
		gpu_link__take(session->gpu, traced->tgid, now_ns);
	gpu_link__poll(session->gpu, now_ns);
	return gpu_link__check(session->gpu, session->child);
}

int session__start(struct session *session, const char *tag)
{
	struct selection selection = selection_of(session);
	int err;

	session->start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	err = attach_kernel_side(session);
	if (!err)
		err = selection_attach(&selection);
	session->start_ns = clock_ns(CLOCK_MONOTONIC);
	session->hint.due_ns = session->start_ns + HINT_NS;
	if (!steps_found__is_probing(session->found))
		session->intervals.next_ns = session->start_ns;
	if (!err)
		err = send_window(session, tag);
	if (!err)
		err = steps_found__describe(session->found);
	if (!err)
		err = selection_take(&selection);
	if (!err)
		err = take_gpu(session);
	/* Of each process there is, in an export of its own. */
	if (!err && session->options->escalate_now)
		record_send_manual(session->output, clock_ns(CLOCK_MONOTONIC));
	stream__forget_early_begins(session->stream);
	if (!err && session->child) {
		err = launch__new(&session->launch, session->loader, session__main_tgid(session));
		if (!err)
			err = child__release(session->child);
	}
	if (err)
		loader__detach(session->loader);
	return err;
}

/* Looks for step functions in files that were mapped since the last time. */
static void search_again(struct session *session, struct traced *traced)
{
	int probed;

	/* With -a the files of all processes are too many to look at every second. */
	if (session->options->all && !traced->rescan)
		return;
	if (steps_found__search(session->found, traced) < 0 ||
	    steps_found__describe(session->found))
		return;
	probed = steps_found__attach(session->found, traced);
	if (probed <= 0 || !session->intervals.next_ns)
		return;
	session->intervals.next_ns = 0;
	log_info("found a step function: steps are its calls from now on");
}

static void rescan(struct session *session, uint64_t now_ns)
{
	uint64_t lost = stream__lost_threads(session->stream);
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(session->traced, i)); i++) {
		if (traced->taken && (traced->missing || lost != session->lost_threads))
			traced_set__take_threads(session->traced, traced->tgid, now_ns);
		if (kill((pid_t)traced->tgid, 0) && errno == ESRCH)
			traced_set__end_slots(session->traced, traced, now_ns);
		else
			search_again(session, traced);
	}
	session->lost_threads = lost;
	session->rescan_ns = now_ns + RESCAN_NS;
}

static void send_intervals(struct session *session, uint64_t now_ns, bool truncated)
{
	interval_send_all(&session->intervals, session->traced, now_ns, truncated,
			  session->options->steps, session->output);
}

static void remove_ended(struct session *session)
{
	struct traced *traced;
	size_t i = 0;
	int live;

	while ((traced = traced_set__at(session->traced, i))) {
		/* Threads without a slot may live on. */
		if (!traced->live_threads && traced->taken &&
		    (live = traced_set__take_threads(session->traced, traced->tgid,
						     clock_ns(CLOCK_MONOTONIC))) > 0)
			traced->live_threads = (uint32_t)live;
		if (traced->live_threads) {
			i++;
			continue;
		}
		if (session->intervals.next_ns)
			interval_send(session->traced, traced, clock_ns(CLOCK_MONOTONIC), true,
				      session->output);
		gpu_link__end(session->gpu, traced->tgid, clock_ns(CLOCK_MONOTONIC));
		loader__remove_target(session->loader, traced->tgid);
		traced_set__remove(session->traced, traced, clock_ns(CLOCK_MONOTONIC));
	}
}

void session__poll(struct session *session)
{
	const struct traced *first;
	uint64_t now_ns;
	bool stopped;

	stream__drain(session->stream);
	stream__send_lost(session->stream);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	step_guard__turn(session->guard, now_ns, session->cost.step_ns);
	/* Before its first own instruction a COMMAND has no steps of any kind. */
	if (session->intervals.next_ns && session->launch && !launch__is_done(session->launch))
		session->intervals.next_ns = now_ns;
	else if (session->intervals.next_ns && now_ns >= session->intervals.next_ns)
		send_intervals(session, now_ns, false);
	remove_ended(session);
	stopped = session->launch && launch__is_stopped(session->launch);
	if (stopped || now_ns >= session->rescan_ns)
		rescan(session, now_ns);
	if (stopped)
		launch__continue(session->launch);
	first = traced_set__at(session->traced, 0);
	if (hint_wait_turn(&session->hint, now_ns) && !stream__has_steps(session->stream) &&
	    !step_guard__has_acted(session->guard) && first && !session->options->all)
		session->hint.hint = hint__begin(session->options, first->tgid);
	gpu_link__poll(session->gpu, now_ns);
	/* A COMMAND may come to use CUDA as long as it runs. */
	session->gpu_err = gpu_link__check(session->gpu, session->child);
}

bool session__is_over(const struct session *session)
{
	uint64_t steps = stream__steps(session->stream) + session->intervals.steps;

	if (session->gpu_err || (session->options->steps && steps >= session->options->steps))
		return true;
	return !session->options->all && !traced_set__at(session->traced, 0) &&
	       !loader__awaits_command(session->loader);
}

int session__finish(struct session *session)
{
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - session->start_cpu_ns;
	struct fbt_window_end end = {0};
	struct traced *traced;

	loader__detach(session->loader);
	end.end_ns = clock_ns(CLOCK_MONOTONIC);
	usleep(SETTLE_US);
	step_guard__finish(session->guard, end.end_ns);
	gpu_link__finish(session->gpu);
	stream__finish(session->stream, end.end_ns);
	if (session->intervals.next_ns)
		send_intervals(session, end.end_ns, true);
	for (size_t i = 0; (traced = traced_set__at(session->traced, i)); i++)
		traced_set__send_table(session->traced, traced, end.end_ns);
	calibrate_finish(&session->cost, session->loader, cpu_ns, stream__steps(session->stream),
			 session->options->bpf_stats);
	record_send(session->output, &session->cost, sizeof(session->cost), FBT_EVENT_COST);
	record_send(session->output, &end, sizeof(end), FBT_EVENT_WINDOW_END);
	if (session->child)
		child__report(session->child);
	return gpu_link__check(session->gpu, false);
}
