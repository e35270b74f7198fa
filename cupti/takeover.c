/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "takeover.h"

/* After so many records of canaries, this CUPTI is known to record them. */
#define PROOFS 3
/* So many turns (TURN_MS of shim.c) without any sign of CUPTI are no chance. */
#define QUIET_TURNS 8

void takeover__begin(struct shim *shim)
{
	bool canary_works = shim->takeover.canary_works;

	__atomic_store_n(&shim->takeover.buffers, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shim->takeover.foreign, 0, __ATOMIC_RELAXED);
	shim->takeover.canary_works = canary_works;
	shim->takeover.certain = false;
	shim->takeover.buffers_before = 0;
	shim->takeover.content_before = 0;
	shim->takeover.quiet_turns = 0;
}

void takeover__send_canary(const struct shim *shim)
{
	/* cuDriverGetVersion: it needs no context, waits for nothing, and engines hardly call it.
	 */
	cuda_driver__version(&shim->driver);
}

static bool learn(struct shim *shim)
{
	pthread_mutex_lock(&shim->lock);
	shim->takeover.canary_works |= shim->records.counts.canaries >= PROOFS;
	pthread_mutex_unlock(&shim->lock);
	return shim->takeover.canary_works;
}

/*
 * Whether CUPTI has shown no sign of writing for us since the last look. It may keep a buffer for
 * as long as work in it runs, but then the canary's record is written to it.
 */
static bool is_quiet(struct shim *shim)
{
	struct takeover *takeover = &shim->takeover;
	uint32_t buffers = __atomic_load_n(&takeover->buffers, __ATOMIC_ACQUIRE);
	bool moved = buffers != takeover->buffers_before;
	uint64_t content = moved ? 0 : buffer_pool__content(&shim->pool);
	bool quiet = !moved && content == takeover->content_before;

	takeover->buffers_before = buffers;
	takeover->content_before = content;
	return quiet;
}

bool takeover__look(struct shim *shim)
{
	struct takeover *takeover = &shim->takeover;
	bool works = learn(shim);

	takeover->quiet_turns = is_quiet(shim) && works ? takeover->quiet_turns + 1 : 0;
	takeover->certain = takeover->quiet_turns >= QUIET_TURNS ||
			    __atomic_load_n(&takeover->foreign, __ATOMIC_RELAXED);
	return !takeover->quiet_turns && !takeover->certain;
}

void takeover__count_buffer(struct takeover *takeover)
{
	__atomic_fetch_add(&takeover->buffers, 1, __ATOMIC_RELEASE);
}

void takeover__set_foreign(struct takeover *takeover)
{
	__atomic_store_n(&takeover->foreign, 1, __ATOMIC_RELAXED);
}

const char *takeover__detail(const struct takeover *takeover)
{
	return __atomic_load_n(&takeover->foreign, __ATOMIC_RELAXED)
		       ? "another profiler was recording already"
		       : "another profiler has taken it over";
}
