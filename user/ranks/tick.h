/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Ticks: what one process of a Python engine did in one iteration. A tick begins with a step of the
 * process's leading function, and has the steps of its other functions up to the next such step:
 * execute_model and sample_tokens, or run_batch and the results of the batch before. Pure.
 */
#ifndef FBT_RANKS_TICK_H
#define FBT_RANKS_TICK_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_look.h"
#include "model/step.h"

/* Where the time of a tick went: enum step_part without what these are, and these. */
enum tick_part {
	TICK_GC = STEP_PARTS, /* collections of garbage, of STEP_OWN */
	TICK_GIL,	      /* waits for the lock of its interpreter, of futex calls */
	TICK_CPU_LIMIT,	      /* of STEP_CPU_WAIT, if a limit of its cgroup explains it */
	TICK_BETWEEN,	      /* between its steps: on a CPU or in calls */
	TICK_PARTS,
};

/* Functions of one process that are told apart; further ones are in the last. */
#define TICK_KINDS 4

struct tick_kind {
	uint32_t kind; /* 0: none */
	uint32_t steps;
	uint64_t ns;
};

/* The parts sum up to end_ns - begin_ns, except for rounding by the tool's own walks. */
struct tick {
	uint32_t tgid;
	uint32_t kind;	 /* the leading one */
	uint64_t number; /* of its first step */
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t next_ns; /* begin of the next tick; UINT64_MAX: none came */
	uint64_t parts_ns[TICK_PARTS];
	bool parts_known;		    /* of all its steps */
	bool calls_known;		    /* the same */
	struct fbt_stop stop;		    /* the one that was seen last; header.type 0: none */
	struct fbt_stop_sender stop_sender; /* header.type 0: not known */
	bool gap_known;
	uint64_t gap_ns; /* before it */
	struct step_gap gap;
	uint32_t arg_mask; /* those of its first step */
	int64_t args[FBT_ARG_COUNT];
	struct tick_kind kinds[TICK_KINDS]; /* the leading one first */
};

/* A process whose steps are put together. {.tgid = …} is empty. */
struct ticker {
	uint32_t tgid;
	uint32_t lead; /* kind; 0: no step yet */
	bool lead_has_args;
	bool is_open; /* tick has steps */
	struct tick tick;
};

/*
 * Takes the next step of the process, by order of ends. true: *done is the tick before it, whole.
 * Steps that were cut off, or were slowed down by PyTorch's profiler, are left out. The leading
 * function is the first one that has arguments, which say how much there is to do; else the first
 * of all.
 */
bool ticker_add(struct ticker *ticker, const struct step *step, struct tick *done);

/* The last tick, if there is one: no step comes any more. */
bool ticker_end(struct ticker *ticker, struct tick *done);

#endif
