/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shim/peers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "inject/inject.h"
#include "proc/status.h"
#include "shim/library.h"
#include "shim/peer.h"

struct wanted {
	uint32_t tgid;
	uint64_t due_ns;
	bool tried;
};

struct gpu_inject {
	char *shim;
	uint64_t timeout_ns;
	VEC(struct wanted) queue; /* in order of arrival */
	struct inject *running;	  /* NULL: none */
	uint32_t tgid;		  /* of the running injection; 0: its outcome is not wanted */
	bool finished;
};

struct gpu_inject *gpu_inject__new(char *shim, uint64_t timeout_ns)
{
	struct gpu_inject *inject = calloc(1, sizeof(*inject));

	if (!inject) {
		free(shim);
		return NULL;
	}
	inject->timeout_ns = timeout_ns;
	inject->shim = shim;
	return inject;
}

void gpu_inject__free(struct gpu_inject *inject)
{
	if (!inject)
		return;
	inject__free(inject->running);
	vec_free(&inject->queue);
	free(inject->shim);
	free(inject);
}

static struct wanted *find(struct gpu_inject *inject, uint32_t tgid)
{
	vec_for_each (wanted, &inject->queue) {
		if (wanted->tgid == tgid)
			return wanted;
	}
	return NULL;
}

static bool is_old(uint32_t tgid)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK), start_ns;
	struct thread_stat stat;

	if (thread_stat_read(&stat, (struct proc_ref){tgid, tgid}))
		return false;
	start_ns = stat.start_ticks * (NS_PER_S / ticks);
	return clock_ns(CLOCK_BOOTTIME) >= start_ns + GPU_INJECT_SETTLE_NS;
}

void gpu_inject__want(struct gpu_inject *inject, uint32_t tgid, uint64_t since_ns, bool from_start)
{
	struct wanted wanted = {.tgid = tgid, .due_ns = since_ns};

	if (find(inject, tgid))
		return;
	if (!from_start || !is_old(tgid))
		wanted.due_ns += GPU_INJECT_SETTLE_NS;
	if (vec_push(&inject->queue, wanted))
		log_warn("process %u: no memory to inject the shim", tgid);
}

void gpu_inject__forget(struct gpu_inject *inject, uint32_t tgid)
{
	struct wanted *wanted = find(inject, tgid);

	if (inject->tgid == tgid)
		inject->tgid = 0;
	if (!wanted)
		return;
	memmove(wanted, wanted + 1,
		(size_t)(inject->queue.items + inject->queue.count - wanted - 1) * sizeof(*wanted));
	inject->queue.count--;
}

/* Every failed outcome comes with a text, unless the process is gone. */
static void judge(struct gpu_injected *injected, const struct inject_outcome *outcome)
{
	bool loaded = outcome->status == INJECT_LOADED;

	injected->loaded = outcome->status == INJECT_PRESENT || (loaded && !outcome->result);
	if (loaded && outcome->result)
		snprintf(injected->why, sizeof(injected->why),
			 "it was loaded but could not start: %s", strerror(outcome->result));
	else if (!injected->loaded && outcome->status != INJECT_GONE)
		snprintf(injected->why, sizeof(injected->why), "%s",
			 *outcome->text ? outcome->text : "it failed; the process goes on");
}

static void log_outcome(uint32_t tgid, const struct inject_outcome *outcome)
{
	if (outcome->status == INJECT_LOADED)
		log_info("process %u: shim injected through thread %u, which was stopped for %.3f "
			 "ms; it stays loaded after the trace, and idle",
			 tgid, outcome->tid, (double)outcome->stop_ns / 1e6);
	log_debug("process %u: injection: status %d, %u tries, %.3f ms", tgid, outcome->status,
		  outcome->tries, (double)outcome->total_ns / 1e6);
}

/* The running injection has ended. false: its outcome is not wanted. */
static bool take_outcome(struct gpu_inject *inject, const struct inject_outcome *outcome,
			 struct gpu_injected *injected)
{
	inject__free(inject->running);
	inject->running = NULL;
	if (!inject->tgid)
		return false;
	injected->tgid = inject->tgid;
	log_outcome(inject->tgid, outcome);
	judge(injected, outcome);
	return true;
}

/* true: the injection has ended, and *injected is its outcome. */
static bool poll_running(struct gpu_inject *inject, uint64_t now_ns, struct gpu_injected *injected)
{
	struct inject_outcome outcome = {0};

	return inject__poll(inject->running, now_ns, &outcome) &&
	       take_outcome(inject, &outcome, injected);
}

void gpu_inject__finish(struct gpu_inject *inject, struct gpu_injected *injected)
{
	struct inject_outcome outcome = {0};

	memset(injected, 0, sizeof(*injected));
	inject->finished = true;
	if (!inject->running)
		return;
	inject__await(inject->running, &outcome);
	take_outcome(inject, &outcome, injected);
}

/* true: the injection could not be started, and *injected says why. */
static bool start(struct gpu_inject *inject, struct wanted *wanted, struct gpu_injected *injected)
{
	const struct inject_load load = inject_load_shim(inject->shim);
	int err;

	wanted->tried = true;
	inject->tgid = wanted->tgid;
	log_debug("process %u: injecting %s", wanted->tgid, inject->shim);
	err = inject__start(&inject->running, wanted->tgid, &load, inject->timeout_ns);
	if (!err)
		return false;
	inject->running = NULL;
	injected->tgid = wanted->tgid;
	snprintf(injected->why, sizeof(injected->why), "%s", strerror(-err));
	return true;
}

bool gpu_inject__poll(struct gpu_inject *inject, uint64_t now_ns, struct gpu_injected *injected)
{
	memset(injected, 0, sizeof(*injected));
	if (inject->finished)
		return false;
	if (inject->running)
		return poll_running(inject, now_ns, injected);
	vec_for_each (wanted, &inject->queue) {
		if (!wanted->tried && now_ns >= wanted->due_ns)
			return start(inject, wanted, injected);
	}
	return false;
}

/* Time for searches in one turn: reading /proc must not delay draining the BPF rings. */
#define LOOK_BUDGET_NS NS_PER_MS
/*
 * Pause between two searches of a process: LOOK_NS times the number of processes, within these
 * bounds.
 */
#define LOOK_NS	    12500000ull
#define LOOK_NS_MIN 100000000ull
#define LOOK_NS_MAX 5000000000ull
/*
 * How long to wait for the last records at the end, and how often to look: the shim flushes CUPTI.
 */
#define FINISH_NS 2000000000ull
#define FINISH_US 2000
/* Time for checking all processes for CUDA at the end of a window. */
#define CUDA_BUDGET_NS 200000000ull

struct gpu_link {
	enum gpu_mode mode;
	const struct record_output *output;
	VEC(struct gpu_peer *) peers;
	size_t next;		   /* index of the peer that was searched last */
	size_t armed_gone;	   /* processes that were armed and have ended */
	bool refused;		   /* --gpu require was not met; logged */
	struct gpu_inject *inject; /* GPU_INJECT, else NULL */
};

struct gpu_link *gpu_link__new(enum gpu_mode mode, const struct record_output *output)
{
	struct gpu_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->mode = mode;
	link->output = output;
	return link;
}

int gpu_link__open(struct gpu_link **result, enum gpu_mode mode, uint64_t inject_timeout_ns,
		   const struct record_output *output)
{
	struct gpu_link *link = gpu_link__new(mode, output);
	int err = link ? 0 : -ENOMEM;

	if (!err && mode == GPU_INJECT) {
		char *shim = gpu_shim_path();

		if (!shim)
			log_err("--gpu inject: " GPU_SHIM_MISSING);
		else
			link->inject = gpu_inject__new(shim, inject_timeout_ns);
		err = !shim ? -ENOENT : link->inject ? 0 : -ENOMEM;
	}
	if (err) {
		gpu_link__free(link);
		link = NULL;
	}
	*result = link;
	return err;
}

void gpu_link__free(struct gpu_link *link)
{
	if (!link)
		return;
	vec_for_each (peer, &link->peers)
		gpu_peer__free(*peer);
	vec_free(&link->peers);
	gpu_inject__free(link->inject);
	free(link);
}

static struct gpu_peer **find_peer(struct gpu_link *link, uint32_t tgid)
{
	vec_for_each (peer, &link->peers) {
		if (gpu_peer__tgid(*peer) == tgid)
			return peer;
	}
	return NULL;
}

void gpu_link__take(struct gpu_link *link, uint32_t tgid, uint64_t now_ns)
{
	struct gpu_peer **known = find_peer(link, tgid), *peer;

	if (link->inject)
		gpu_inject__forget(link->inject, tgid);
	if (known) {
		if (link->mode != GPU_OFF)
			gpu_peer__restart(*known, now_ns);
		return;
	}
	peer = gpu_peer__new(tgid, link->output, now_ns);
	if (!peer || vec_push(&link->peers, peer)) {
		gpu_peer__free(peer);
		log_warn("process %u: no memory to look for GPU records", tgid);
		return;
	}
	if (link->mode == GPU_OFF)
		gpu_peer__send_off(peer, now_ns);
	if (link->inject)
		gpu_peer__await_injection(peer);
}

void gpu_link__end(struct gpu_link *link, uint32_t tgid, uint64_t now_ns)
{
	struct gpu_peer **peer = find_peer(link, tgid);

	if (link->inject)
		gpu_inject__forget(link->inject, tgid);
	if (!peer)
		return;
	gpu_peer__end(*peer, now_ns);
	link->armed_gone += gpu_peer__was_armed(*peer);
	gpu_peer__free(*peer);
	*peer = link->peers.items[--link->peers.count];
}

static uint64_t look_pause(const struct gpu_link *link)
{
	uint64_t pause_ns = link->peers.count * LOOK_NS;

	if (pause_ns < LOOK_NS_MIN)
		return LOOK_NS_MIN;
	return pause_ns < LOOK_NS_MAX ? pause_ns : LOOK_NS_MAX;
}

/* Searches due processes in turn, at least one, until LOOK_BUDGET_NS have passed. */
static void look_for_shims(struct gpu_link *link, uint64_t now_ns)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < link->peers.count; i++) {
		struct gpu_peer *peer;

		link->next = (link->next + 1) % link->peers.count;
		peer = link->peers.items[link->next];
		if (!gpu_peer__is_due(peer, now_ns))
			continue;
		gpu_peer__look(peer, now_ns, look_pause(link));
		if (clock_ns(CLOCK_MONOTONIC) - start_ns >= LOOK_BUDGET_NS)
			return;
	}
}

static void inject_shims(struct gpu_link *link, uint64_t now_ns)
{
	struct gpu_injected injected;
	struct gpu_peer **peer;

	vec_for_each (lacking, &link->peers) {
		bool from_start;
		uint64_t since_ns = gpu_peer__lacks_shim(*lacking, &from_start);

		if (since_ns)
			gpu_inject__want(link->inject, gpu_peer__tgid(*lacking), since_ns,
					 from_start);
	}
	if (!gpu_inject__poll(link->inject, now_ns, &injected))
		return;
	peer = find_peer(link, injected.tgid);
	if (peer && injected.loaded)
		gpu_peer__take_shim(*peer, now_ns);
	else if (peer && *injected.why)
		gpu_peer__do_without(*peer, injected.why, now_ns);
}

void gpu_link__poll(struct gpu_link *link, uint64_t now_ns)
{
	vec_for_each (peer, &link->peers)
		gpu_peer__poll(*peer, now_ns);
	if (link->inject)
		inject_shims(link, now_ns);
	look_for_shims(link, now_ns);
}

size_t gpu_link__armed(const struct gpu_link *link)
{
	size_t armed = link->armed_gone;

	vec_for_each (peer, &link->peers)
		armed += gpu_peer__was_armed(*peer);
	return armed;
}

bool gpu_link__is_waiting(const struct gpu_link *link)
{
	vec_for_each (peer, &link->peers) {
		if (gpu_peer__is_waiting(*peer))
			return true;
	}
	return false;
}

int gpu_link__check(struct gpu_link *link, bool may_come)
{
	if (link->mode != GPU_REQUIRE || gpu_link__armed(link))
		return 0;
	if (may_come || (link->peers.count && gpu_link__is_waiting(link)))
		return 0;
	if (!link->refused)
		log_err("--gpu require: no traced process has GPU records: it must use CUDA, have "
			"been started with the shim (ferrum-bpftrace engine-env says how), and no "
			"other tool may hold CUPTI; --gpu auto goes on without");
	link->refused = true;
	return -ENOENT;
}

static bool is_settled(const struct gpu_link *link)
{
	vec_for_each (peer, &link->peers) {
		if (!gpu_peer__is_settled(*peer))
			return false;
	}
	return true;
}

/*
 * gpu_peer__poll for all processes; those that are gone are ended, so that nobody waits for them.
 */
static void poll_living(struct gpu_link *link, uint64_t now_ns)
{
	vec_for_each (peer, &link->peers) {
		if (kill((pid_t)gpu_peer__tgid(*peer), 0) && errno == ESRCH)
			gpu_peer__end(*peer, now_ns);
		else
			gpu_peer__poll(*peer, now_ns);
	}
}

/* Called last, when all shims are disarmed: a running injection may take long. */
static void finish_injections(struct gpu_link *link, uint64_t now_ns)
{
	struct gpu_injected injected;
	bool from_start;

	gpu_inject__finish(link->inject, &injected);
	vec_for_each (peer, &link->peers) {
		if (injected.loaded && gpu_peer__tgid(*peer) == injected.tgid)
			gpu_peer__miss_shim(*peer, now_ns);
		if (gpu_peer__lacks_shim(*peer, &from_start))
			gpu_peer__do_without(*peer, "the window ended first", now_ns);
	}
}

void gpu_link__finish(struct gpu_link *link)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), now_ns = start_ns;

	vec_for_each (peer, &link->peers)
		gpu_peer__leave(*peer, now_ns);
	while (!is_settled(link) && now_ns - start_ns < FINISH_NS) {
		usleep(FINISH_US);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		poll_living(link, now_ns);
	}
	vec_for_each (peer, &link->peers)
		gpu_peer__give_up(*peer, now_ns);
	start_ns = now_ns;
	vec_for_each (peer, &link->peers) {
		gpu_peer__look_for_cuda(*peer, now_ns);
		if (clock_ns(CLOCK_MONOTONIC) - start_ns >= CUDA_BUDGET_NS)
			break;
	}
	if (link->inject)
		finish_injections(link, now_ns);
}
