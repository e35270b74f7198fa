/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "decode.h"
#include "gpu_relay.h"
#include "gpu_ring.h"
#include "gpu_standing.h"
#include "gpu_watch.h"
#include "time_namespace.h"

/* Looking takes so small a part of the time. */
#define LOOK_SHARE 100
/* Looks for the shim to one for CUDA without it. */
#define CUDA_EVERY 4
/* What may be over by then: another tool in CUPTI's seat, another tracer, a stopped process. */
#define RETRY_NS 10000000000ull

enum peer_phase {
	PEER_SEARCHING,
	PEER_ASKED, /* the shim has not answered yet */
	PEER_ARMED,
	PEER_LEAVING, /* its last records are awaited */
	PEER_DONE,    /* nothing more to be had */
};

struct gpu_peer {
	enum peer_phase phase;
	struct gpu_ring *ring; /* while asked, armed or leaving */
	struct gpu_relay relay;
	struct gpu_standing standing;
	uint64_t now_ns;  /* of the call we are in */
	uint64_t look_ns; /* when to look next */
	struct gpu_watch watch;
	uint32_t looks;
	bool was_armed; /* ever */
	bool flowing;	/* records come, and their end was not told yet */
	bool silent;	/* armed, and its pulse stands still */
	bool foreign;	/* it still works for a tracer that was before us */
	bool ended;	/* the shim says that it stopped … */
	bool refused;	/* … or that it will not collect */
};

struct gpu_peer *gpu_peer__new(uint32_t tgid, const struct record_output *output, uint64_t now_ns)
{
	struct gpu_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->standing.output = output;
	peer->look_ns = now_ns;
	peer->relay.tgid = tgid;
	peer->relay.output = output;
	peer->standing.state.tgid = tgid;
	return peer;
}

/* Another tracer may have it. */
static void release(struct gpu_peer *peer, enum peer_phase phase)
{
	gpu_ring__free(peer->ring);
	peer->ring = NULL;
	gpu_tids__free(peer->relay.tids);
	peer->relay.tids = NULL;
	peer->phase = phase;
}

void gpu_peer__free(struct gpu_peer *peer)
{
	if (!peer)
		return;
	release(peer, PEER_DONE);
	gpu_standing_clear(&peer->standing);
	free(peer);
}

uint32_t gpu_peer__tgid(const struct gpu_peer *peer)
{
	return peer->relay.tgid;
}

static uint64_t skipped(const struct gpu_peer *peer)
{
	return peer->ring ? gpu_ring__skipped(peer->ring) : 0;
}

static void say(struct gpu_peer *peer, enum fbt_gpu_status status, const char *detail)
{
	gpu_standing_say(&peer->standing, status, detail, peer->now_ns);
}

/* Records have come, and no more of them will: the shim, or the process, is not asked. */
static void close_records(struct gpu_peer *peer)
{
	if (peer->flowing)
		gpu_relay_end(&peer->relay, skipped(peer), peer->now_ns);
	peer->flowing = false;
}

static void stop(struct gpu_peer *peer, enum fbt_gpu_status status, const char *detail,
		 enum peer_phase next)
{
	close_records(peer);
	say(peer, status, detail);
	release(peer, next);
	peer->look_ns = peer->now_ns + RETRY_NS;
}

static void ask(struct gpu_peer *peer)
{
	peer->phase = PEER_ASKED;
	gpu_watch_ask(&peer->watch, peer->now_ns);
	memset(&peer->relay.flush, 0, sizeof(peer->relay.flush));
	peer->foreign = !gpu_ring__is_dormant(peer->ring);
	gpu_ring__arm(peer->ring);
}

static void say_armed(struct gpu_peer *peer, const char *detail, uint64_t time_ns)
{
	uint64_t asked_ns = peer->watch.asked_ns;

	peer->phase = PEER_ARMED;
	peer->was_armed = true;
	peer->flowing = true;
	peer->silent = false;
	peer->relay.flush.last = 0;
	gpu_watch_start(&peer->watch, peer->ring, peer->now_ns);
	peer->standing.state.arm_ns = time_ns > asked_ns ? time_ns - asked_ns : 0;
	gpu_standing_say(&peer->standing, FBT_GPU_ARMED, detail, time_ns);
}

/* Whether a shim would say this now: in answer to what it was asked, and if it refuses, once. */
static bool is_timely(const struct gpu_peer *peer, uint32_t status)
{
	if (status == FBT_GPU_ARMED)
		return peer->phase == PEER_ASKED;
	if (status == FBT_GPU_ENDED)
		return peer->phase == PEER_ARMED || peer->phase == PEER_LEAVING;
	return gpu_standing_is_refusal(status) && (!peer->refused || peer->phase == PEER_SEARCHING);
}

static void take_state(struct gpu_peer *peer, const struct fbt_gpu_state *said)
{
	uint64_t time_ns = gpu_relay_mono(&peer->relay, said->time_ns, peer->now_ns);

	peer->foreign = false;
	if (!is_timely(peer, said->status))
		return;
	gpu_standing_learn(&peer->standing, said);
	if (said->status == FBT_GPU_ARMED) {
		say_armed(peer, decode_string(&said->header, 0), time_ns);
		return;
	}
	peer->ended |= said->status == FBT_GPU_ENDED;
	peer->refused |= said->status != FBT_GPU_ENDED;
	if (peer->refused)
		close_records(peer);
	gpu_standing_say(&peer->standing, (enum fbt_gpu_status)said->status,
			 decode_string(&said->header, 0), time_ns);
}

/* What another tracer had asked for uses names that we were never told. */
static void take_record(void *ctx, struct fbt_header *record)
{
	struct gpu_peer *peer = ctx;

	if (record->type == FBT_EVENT_GPU_STATE)
		take_state(peer, (const struct fbt_gpu_state *)record);
	else if (!peer->foreign)
		gpu_relay_record(&peer->relay, record, skipped(peer), peer->now_ns);
}

/* false: nothing more can be read, and that was said. */
static bool read_ring(struct gpu_peer *peer)
{
	if (!gpu_ring__read(peer->ring, take_record, peer))
		return true;
	stop(peer, FBT_GPU_BAD_RING, "", peer->phase == PEER_LEAVING ? PEER_DONE : PEER_SEARCHING);
	return false;
}

static void look_into(struct gpu_peer *peer)
{
	uint32_t tgid = peer->relay.tgid;

	peer->relay.tids = gpu_tids__new(tgid);
	if (!peer->relay.tids) {
		release(peer, PEER_SEARCHING);
		return;
	}
	memset(&peer->relay.clock, 0, sizeof(peer->relay.clock));
	peer->relay.clock.timens_ns = time_namespace_offset(tgid);
	peer->ended = false;
	peer->refused = false;
	/* Nobody will answer: what it said when it gave up is all there is. */
	if (gpu_ring__is_dead(peer->ring)) {
		if (!read_ring(peer))
			return;
		if (!peer->refused)
			say(peer, FBT_GPU_FAILED, "its shim has given up");
		release(peer, PEER_DONE);
		return;
	}
	ask(peer);
}

bool gpu_peer__is_due(const struct gpu_peer *peer, uint64_t now_ns)
{
	return peer->phase == PEER_SEARCHING && now_ns >= peer->look_ns;
}

void gpu_peer__look(struct gpu_peer *peer, uint64_t now_ns, uint64_t pause_ns)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), took_ns;
	uint32_t version, holder;
	int err = gpu_ring__open(&peer->ring, peer->relay.tgid, &version, &holder);

	took_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	peer->now_ns = now_ns;
	peer->look_ns = now_ns + pause_ns + LOOK_SHARE * took_ns;
	if (!err)
		look_into(peer);
	else if (err != -ENOENT || peer->looks % CUDA_EVERY == 0)
		gpu_standing_explain(&peer->standing, err, version, holder, now_ns);
	peer->looks++;
}

static void check_answer(struct gpu_peer *peer, bool answered)
{
	if (answered)
		stop(peer, FBT_GPU_FAILED, "its shim does not say why", PEER_DONE);
	else if (gpu_watch_is_overdue(&peer->watch, peer->relay.tgid, peer->now_ns))
		stop(peer, FBT_GPU_STALLED, "CUPTI has not started in 30 s", PEER_SEARCHING);
}

/*
 * A process that is stopped goes on where it was: as long as we beat, its shim stays armed. What it
 * could not send meanwhile nobody waits for.
 */
static void check_pulse(struct gpu_peer *peer, bool rests)
{
	if (rests) {
		stop(peer, FBT_GPU_FAILED, "its shim stopped", PEER_DONE);
	} else if (gpu_watch_lives(&peer->watch, peer->ring, peer->now_ns)) {
		if (peer->silent)
			say_armed(peer, "", peer->now_ns);
	} else if (gpu_watch_is_silent(&peer->watch, peer->now_ns)) {
		close_records(peer);
		say(peer, FBT_GPU_STALLED, "");
		peer->silent = true;
	}
}

/* Its shim stopped of itself: it has not seen us for a while. */
static void ask_again(struct gpu_peer *peer)
{
	close_records(peer);
	peer->ended = false;
	ask(peer);
}

static void settle(struct gpu_peer *peer)
{
	if (!peer->refused) {
		close_records(peer);
		say(peer, FBT_GPU_ENDED, "");
	}
	release(peer, PEER_DONE);
}

/* What a refusal leaves; a seat that is taken may be free later. */
static void take_refusal(struct gpu_peer *peer)
{
	bool may_change = peer->standing.state.status == FBT_GPU_BUSY;

	release(peer, may_change && peer->phase != PEER_LEAVING ? PEER_SEARCHING : PEER_DONE);
	peer->look_ns = peer->now_ns + RETRY_NS;
}

void gpu_peer__poll(struct gpu_peer *peer, uint64_t now_ns)
{
	bool rests;

	peer->now_ns = now_ns;
	if (!peer->ring)
		return;
	gpu_watch_beat(&peer->watch, peer->ring, now_ns);
	/* Asked first: what it wrote before it came to rest is there then. */
	rests = gpu_ring__is_dormant(peer->ring);
	if (!read_ring(peer))
		return;
	if (peer->refused)
		take_refusal(peer);
	else if (peer->phase == PEER_LEAVING && rests)
		settle(peer);
	else if (peer->phase == PEER_ARMED && peer->ended)
		ask_again(peer);
	else if (peer->phase == PEER_ASKED)
		check_answer(peer, rests);
	else if (peer->phase == PEER_ARMED)
		check_pulse(peer, rests);
}

void gpu_peer__end(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	if (!peer->ring || !read_ring(peer))
		return;
	if (!peer->refused && !peer->ended) {
		close_records(peer);
		say(peer, FBT_GPU_EXITED, "");
	}
	release(peer, PEER_DONE);
}

void gpu_peer__restart(struct gpu_peer *peer, uint64_t now_ns)
{
	gpu_peer__end(peer, now_ns);
	gpu_standing_renew(&peer->standing);
	peer->phase = PEER_SEARCHING;
	peer->look_ns = now_ns;
	peer->looks = 0;
}

void gpu_peer__leave(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	if (peer->phase == PEER_ARMED && !peer->silent) {
		peer->phase = PEER_LEAVING;
		gpu_ring__disarm(peer->ring);
	} else if (peer->phase == PEER_ASKED) {
		stop(peer, FBT_GPU_STALLED, "CUPTI had not started when the window ended",
		     PEER_DONE);
	} else {
		release(peer, PEER_DONE);
	}
}

bool gpu_peer__is_settled(const struct gpu_peer *peer)
{
	return peer->phase == PEER_DONE;
}

void gpu_peer__give_up(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	if (peer->ring)
		stop(peer, FBT_GPU_STALLED, "its last records did not come", PEER_DONE);
}

void gpu_peer__look_for_cuda(struct gpu_peer *peer, uint64_t now_ns)
{
	if (peer->standing.state.status == FBT_GPU_NOT_CUDA)
		gpu_standing_say_absent(&peer->standing, now_ns);
}

bool gpu_peer__was_armed(const struct gpu_peer *peer)
{
	return peer->was_armed;
}

bool gpu_peer__is_waiting(const struct gpu_peer *peer)
{
	return peer->phase == PEER_ASKED || (peer->phase == PEER_SEARCHING && !peer->looks);
}

void gpu_peer__await_injection(struct gpu_peer *peer)
{
	peer->standing.injects = true;
}

uint64_t gpu_peer__lacks_shim(const struct gpu_peer *peer, bool *from_start)
{
	*from_start = peer->standing.lacked;
	return gpu_standing_awaits_shim(&peer->standing) ? peer->standing.lacks_ns : 0;
}

void gpu_peer__take_shim(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->look_ns = now_ns;
}

void gpu_peer__do_without(struct gpu_peer *peer, const char *why, uint64_t now_ns)
{
	gpu_standing_say(&peer->standing, FBT_GPU_NOT_INJECTED, why, now_ns);
}

void gpu_peer__send_off(struct gpu_peer *peer, uint64_t now_ns)
{
	gpu_standing_say(&peer->standing, FBT_GPU_OFF, "", now_ns);
	peer->phase = PEER_DONE;
}
