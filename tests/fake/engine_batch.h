/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The work of the embedded engine's next step. */
#ifndef FBT_TESTS_ENGINE_BATCH_H
#define FBT_TESTS_ENGINE_BATCH_H

#include "engine_calls.h"

/* The same numbers in every run (xorshift32). */
static inline uint32_t next_random(struct engine *e)
{
	e->random ^= e->random << 13;
	e->random ^= e->random >> 17;
	e->random ^= e->random << 5;
	return e->random;
}

/*
 * The work of the next step, and the argument that describes it: with --mixed-us one token for
 * every 100 us of computing; with --trouble 512 tokens in troubled steps, else 1; else the step's
 * number on its thread, from 1.
 */
static inline void set_batch(struct worker *w)
{
	struct engine *e = w->engine;
	long mean = e->config.compute_us;
	int64_t tokens = (int64_t)w->steps;

	w->compute_us = mean;
	if (e->config.mixed_us > 0) {
		mean = next_random(e) % 6 == 0 ? e->config.mixed_us : mean;
		w->compute_us = mean / 2 + (long)(next_random(e) % (unsigned long)(mean + 1));
		tokens = 1 + w->compute_us / 100;
	} else if (e->trouble) {
		tokens = w->trouble ? 512 : 1;
	}
	w->batch.n_tokens = (int32_t)tokens;
	w->batch.n_tokens_wide = tokens;
	w->n_tokens += (uint64_t)tokens;
}

#endif
