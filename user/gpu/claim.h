/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Attribution: which step of a process its GPU work belongs to, and what a step is given.
 *
 * Something belongs to the step of the thread that did it. If that thread was in no step, it
 * belongs to the step that was open then and began last, unless attribution is strict. The record
 * of a step comes when the step ends: a thread that has steps counts as being in one from the end
 * of its last known step on.
 */
#ifndef FBT_GPU_CLAIM_H
#define FBT_GPU_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include "gpu/join.h"
#include "model/gpu.h"
#include "model/step.h"

/*
 * The attribution of one process's GPU work to its steps. Owns the process's records (gpu/join.h).
 */
struct attribution;

/* strict: a step is given only what its own thread did. NULL: -ENOMEM. */
struct attribution *attribution__new(bool strict);
void attribution__free(struct attribution *attribution);

struct gpu_join *attribution__join(const struct attribution *attribution);

/* Sets where the names of kernels are looked up; borrowed. Before that no names are known. */
void attribution__set_process(struct attribution *attribution, const struct gpu_process *process);

/* An id was given a name, which may replace another one. */
void attribution__rename(struct attribution *attribution, uint32_t name);

/* The time until which work without records may have run (gpu/hidden.h). */
void attribution__set_hidden(struct attribution *attribution, uint64_t until_ns);

/* A step has ended. 0 or -ENOMEM: then nothing is known of it. */
int attribution__add_step(struct attribution *attribution, const struct step *step);

/* The number of launches of a step whose work has not come. */
struct gpu_awaited {
	uint32_t launches; /* of kernels and graphs, without any work */
	uint32_t perhaps;  /* copies and memsets without work, which may have none to do (host to
			    * host, 0 bytes), launches that are captured, and graphs of which more
			    * may come */
};

/* 0 or -ENOMEM. */
int attribution__await(struct attribution *attribution, const struct step *step,
		       struct gpu_awaited *awaited);

/*
 * Gives a step that was added its records and computes its figures. Fills gpu, which is zero
 * before, except sealed, complete and what flushes say. No later step is given these records.
 * *is_damaged: another step already has records of this one. 0, or -ENOMEM with everything as
 * before.
 */
int attribution__take(struct attribution *attribution, const struct step *step,
		      struct step_gpu *gpu, bool *is_damaged);

/* Marks the records of the step taken last as complete: later ones count as late. */
void attribution__seal(struct attribution *attribution);

/* What a thread began at a time belongs to a sealed step on that thread. */
bool attribution__is_late(const struct attribution *attribution, uint32_t tid, uint64_t time_ns);

/* The earliest begin of a step that is yet to come, as far as can be told; 0 before any step. */
uint64_t attribution__next_start(const struct attribution *attribution);

/* Drops steps that ended at or before until_ns, earliest begin first. */
void attribution__forget(struct attribution *attribution, uint64_t until_ns);

#endif
