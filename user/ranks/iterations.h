/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Iterations of Python engines: the ticks of all ranks that belong together, and the step of the
 * engine's own process around them.
 *
 * Ranks are processes with the same parent whose ticks begin with the same function, and whose
 * titles name no other stage of a pipeline (_PP1) and no other replica (_DP1). Their ticks are
 * joined in their order, as long as the arguments that both have are equal, and each begins while
 * those of the others last, or nearer to their begin than to that of the next ones. Where that
 * fails (records were lost, tracing of one began earlier), ticks are left out until those that
 * begin nearest to each other are together again. A process without a parent that is known has
 * iterations of its own ticks.
 *
 * Memory is bounded: beyond the limits below processes have no iterations, and the oldest ticks are
 * left out.
 */
#ifndef FBT_RANKS_ITERATIONS_H
#define FBT_RANKS_ITERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/step.h"
#include "model/window.h"
#include "ranks/late.h"
#include "ranks/tick.h"

/* Ranks of all engines together, at up to 32 KiB each. */
#define RANKS_MAX 256

/* A step of the engine's own process. */
struct engine_step {
	uint64_t number; /* 0: none was seen around the iteration */
	uint32_t kind;
	uint64_t start_ns;
	uint64_t end_ns;
};

/* All pointers are borrowed until the next step is added. */
struct iteration {
	uint64_t number;   /* 1, 2, … of these ranks */
	uint32_t team;	   /* which ranks: 0, 1, … */
	uint32_t parent;   /* their parent; 0: not known */
	const char *name;  /* of the function with which each tick begins */
	uint64_t begin_ns; /* of the first rank */
	uint64_t end_ns;   /* of the last one */
	const struct tick *ranks;
	const struct late *lates; /* one for each rank */
	size_t count;		  /* 0: this is none, it only brings unmatched up to date */
	size_t latest;		  /* index of the rank that is late; count: none is */
	uint64_t unmatched;	  /* ticks of these ranks so far that are in no iteration */
	struct engine_step engine;
};

struct iterations;

/* on_iteration returns 0 or -errno, which is passed up. NULL: -ENOMEM. */
struct iterations *iterations__new(int (*on_iteration)(void *ctx, const struct window *window,
						       const struct iteration *iteration),
				   void *ctx);
void iterations__free(struct iterations *iterations);

/* The next step, of any process and function. 0 or the first -errno. */
int iterations__add(struct iterations *iterations, const struct window *window,
		    const struct step *step);

/* No step comes any more. */
int iterations__flush(struct iterations *iterations, const struct window *window);

#endif
