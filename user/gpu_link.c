/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_link.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "gpu_inject.h"
#include "gpu_peer.h"
#include "log.h"
#include "vec.h"

/* Of a turn: the rings of the kernel side are not to wait for /proc. */
#define LOOK_BUDGET_NS 1000000ull
/* Between two looks at a process: the more processes there are, the longer. */
#define LOOK_NS	    12500000ull
#define LOOK_NS_MIN 100000000ull
#define LOOK_NS_MAX 5000000000ull
/* The target's last records: its shim flushes CUPTI for them. */
#define FINISH_NS 2000000000ull
#define FINISH_US 2000
/* All processes, at the end of a window. */
#define CUDA_BUDGET_NS 200000000ull

struct gpu_link {
	enum gpu_mode mode;
	const struct record_output *output;
	VEC(struct gpu_peer *) peers;
	size_t next;		   /* of peers: whose turn it is to be looked for */
	size_t armed_gone;	   /* ended, and had been armed */
	bool refused;		   /* --gpu require was not met, which was said */
	struct gpu_inject *inject; /* NULL: no shim is put into a process */
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

int gpu_link__open(struct gpu_link **result, const struct option_gpu *options,
		   const struct record_output *output)
{
	struct gpu_link *link = gpu_link__new(options->mode, output);
	int err = link ? 0 : -ENOMEM;

	if (!err && options->mode == GPU_INJECT)
		err = gpu_inject__new(&link->inject, options->inject_timeout_ns);
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

/* Each in its turn, until the time of this one is over; one at least. */
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
			"been started with the shim (ferrum-bpftrace gpu-env says how), and no "
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

/* Whoever is gone answers no more. */
static void poll_living(struct gpu_link *link, uint64_t now_ns)
{
	vec_for_each (peer, &link->peers) {
		if (kill((pid_t)gpu_peer__tgid(*peer), 0) && errno == ESRCH)
			gpu_peer__end(*peer, now_ns);
		else
			gpu_peer__poll(*peer, now_ns);
	}
}

/* Last, since it may take a while: the others have been left by now. */
static void finish_injections(struct gpu_link *link, uint64_t now_ns)
{
	bool from_start;

	gpu_inject__finish(link->inject);
	vec_for_each (peer, &link->peers) {
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
