/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/peers.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/arith.h"
#include "judge/stopper.h"
#include "model/syscalls.h"

#define NAME_COLUMNS 15
#define STEP_COLUMNS 40

static uint64_t looked_ns(const struct fbt_peer *peer)
{
	return sub_saturating(peer->time_ns, peer->first_ns);
}

enum peer_did peer_did(const struct fbt_peer *peer)
{
	uint64_t half_ns = looked_ns(peer) / 2;

	if (!looked_ns(peer))
		return PEER_UNKNOWN;
	if (peer->stopped_ns > half_ns)
		return PEER_STOPPED;
	if (peer->asleep_ns > half_ns)
		return PEER_ASLEEP;
	/* It had something to compute, and got a CPU for some of the time. */
	if (peer->cpu_ns + peer->delay_ns <= half_ns)
		return PEER_UNKNOWN;
	if (peer->delay_ns <= peer->cpu_ns)
		return PEER_COMPUTED;
	return peer->throttled_periods ? PEER_CPU_LIMIT : PEER_NO_CPU;
}

uint64_t peer_did_ns(const struct fbt_peer *peer)
{
	switch (peer_did(peer)) {
	case PEER_STOPPED:
		return peer->stopped_ns;
	case PEER_NO_CPU:
	case PEER_CPU_LIMIT:
		return peer->delay_ns;
	case PEER_COMPUTED:
		return peer->cpu_ns;
	case PEER_ASLEEP:
		return peer->asleep_ns;
	case PEER_UNKNOWN:
	case PEER_DID_COUNT:
		break;
	}
	return 0;
}

uint64_t peer_computed_ns(const struct fbt_peer *peer, uint64_t wait_ns)
{
	double share;

	if (peer_did(peer) != PEER_COMPUTED)
		return 0;
	share = (double)peer->cpu_ns / (double)looked_ns(peer);
	return share < 1 ? (uint64_t)(share * (double)wait_ns) : wait_ns;
}

const char *peer_did_name(enum peer_did did)
{
	static const char *const names[PEER_DID_COUNT] = {
		[PEER_UNKNOWN] = "unknown",	[PEER_ASLEEP] = "asleep",
		[PEER_COMPUTED] = "computed",	[PEER_NO_CPU] = "no_cpu",
		[PEER_CPU_LIMIT] = "cpu_limit", [PEER_STOPPED] = "stopped",
	};

	return (unsigned int)did < PEER_DID_COUNT ? names[did] : "unknown";
}

const char *peer_way_name(enum fbt_peer_way way)
{
	static const char *const names[FBT_PEER_WAY_COUNT] = {
		[FBT_PEER_MEMORY] = "memory",
		[FBT_PEER_FUTEX] = "futex",
		[FBT_PEER_PIPE] = "pipe",
		[FBT_PEER_SOCKET] = "socket",
	};

	return (unsigned int)way < FBT_PEER_WAY_COUNT ? names[way] : "unknown";
}

/* It was looked at for most of the wait, and what it did for most of that is known. */
static bool explains(const struct fbt_peer *peer, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t common_ns =
		sub_saturating(min_u64(peer->time_ns, end_ns), max_u64(peer->first_ns, start_ns));

	return end_ns > start_ns && common_ns >= (end_ns - start_ns) / 2 && peer_did(peer);
}

/* A process that was held explains a wait better than one that works. */
static bool is_held(const struct fbt_peer *peer)
{
	return peer_did(peer) >= PEER_NO_CPU;
}

static bool is_of_step(const struct fbt_peer *peer)
{
	return peer->header.flags & FBT_PEER_OF_STEP;
}

static bool is_better(const struct fbt_peer *peer, const struct fbt_peer *best)
{
	if (is_held(peer) != is_held(best))
		return is_held(peer);
	/* Of the same process what was measured is better than what was sampled. */
	if (peer->peer == best->peer && is_of_step(peer) != is_of_step(best))
		return is_of_step(peer);
	if (!peer->kind != !best->kind)
		return peer->kind != 0;
	if (peer_did(peer) != peer_did(best))
		return peer_did(peer) > peer_did(best);
	return peer_did_ns(peer) > peer_did_ns(best);
}

static bool is_memory_way(const struct fbt_peer *peer)
{
	return peer->way == FBT_PEER_MEMORY || peer->way == FBT_PEER_FUTEX;
}

/* It may sleep because it has nothing to do. */
static bool may_be_idle(const struct step_peer *peer)
{
	const struct fbt_peer *record = &peer->record;

	return peer_did(record) == PEER_ASLEEP && record->others && !record->kind &&
	       !peer->beyond.header.type;
}

static const struct step_peer *better_of(const struct step_peer *peer, const struct step_peer *best)
{
	return !best || is_better(&peer->record, &best->record) ? peer : best;
}

const struct step_peer *peer_find(const struct step *step, bool is_memory, bool by_steps,
				  uint64_t start_ns, uint64_t end_ns)
{
	const struct step_peer *best = NULL;

	vec_for_each (peer, &step->peers) {
		const struct fbt_peer *record = &peer->record;

		if (!record->via && is_memory == is_memory_way(record) && !may_be_idle(peer) &&
		    (by_steps || !is_of_step(record)) && explains(record, start_ns, end_ns))
			best = better_of(peer, best);
	}
	return best;
}

const struct step_peer *peer_find_of(const struct step *step, uint32_t holder, uint64_t start_ns,
				     uint64_t end_ns)
{
	const struct step_peer *best = NULL;

	vec_for_each (peer, &step->peers) {
		if (holder && peer->record.via == holder && !may_be_idle(peer) &&
		    explains(&peer->record, start_ns, end_ns))
			best = better_of(peer, best);
	}
	return best;
}

bool peer_waited_too(const struct step_peer *peer, enum fbt_arch arch)
{
	const struct fbt_peer *beyond = &peer->beyond;
	char buffer[24];

	if (beyond->header.type != FBT_EVENT_PEER || !peer_did(beyond))
		return false;
	if (beyond->way != FBT_PEER_MEMORY)
		return true;
	return is_held(beyond) &&
	       (peer->record.nr == FBT_PEER_NR_UNKNOWN ||
		!strstr(syscall_label(arch, peer->record.nr, buffer), "nanosleep"));
}

/* "worker (pid 29118, in execute_model)". Both names come from other processes. */
static void add_name(struct line *line, const struct fbt_peer *peer, const struct window *window)
{
	char comm[4 * sizeof(peer->comm) + 1], step[4 * STEP_COLUMNS + 1];

	line_add(line, "%s (pid %" PRIu32,
		 shorten_text(comm, sizeof(comm), *peer->comm ? peer->comm : "?", NAME_COLUMNS),
		 peer->peer);
	if (peer->kind)
		line_add(line, ", in %s",
			 shorten_name(step, sizeof(step), window__kind_name(window, peer->kind),
				      STEP_COLUMNS));
	line_add(line, ")");
}

static void add_call(struct line *line, const struct fbt_peer *peer, const struct window *window)
{
	char buffer[24];

	if (peer->nr == FBT_PEER_NR_UNKNOWN)
		line_add(line, "was asleep");
	else
		line_add(line, "was in %s",
			 syscall_label((enum fbt_arch)window->record.arch, peer->nr, buffer));
}

/* ", which was stopped by a tracer: gdb (pid 4711)" */
static void add_did(struct line *line, const struct fbt_peer *peer,
		    const struct fbt_stop_sender *sender, const struct window *window)
{
	struct fbt_stop stop = {.reason = peer->stop_reason, .tracer = peer->tracer};

	line_add(line, ", which ");
	switch (peer_did(peer)) {
	case PEER_COMPUTED:
		line_add(line, "computed");
		break;
	case PEER_ASLEEP:
		add_call(line, peer, window);
		break;
	case PEER_NO_CPU:
		line_add(line, "had no CPU");
		break;
	case PEER_CPU_LIMIT:
		line_add(line, "had no CPU: the CPU limit of its cgroup was reached ");
		line_add_times(line, peer->throttled_periods);
		break;
	case PEER_STOPPED:
		memcpy(stop.comm, peer->tracer_comm, sizeof(stop.comm));
		line_add(line, "was stopped");
		stopper_add(line, &stop, sender);
		break;
	case PEER_UNKNOWN:
	case PEER_DID_COUNT:
		line_add(line, "did what is not known");
		break;
	}
}

void peer_describe(struct line *line, const struct step_peer *peer, const struct window *window)
{
	add_name(line, &peer->record, window);
	add_did(line, &peer->record, &peer->sender, window);
	if (peer->beyond.header.type != FBT_EVENT_PEER)
		return;
	line_add(line, " and waited for ");
	add_name(line, &peer->beyond, window);
	add_did(line, &peer->beyond, &peer->beyond_sender, window);
}
