/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Takes what a step launched out of the records of its process, and has its figures computed. */
#ifndef FBT_GPU_CLAIM_H
#define FBT_GPU_CLAIM_H

#include <stdbool.h>
#include "gpu_item.h"
#include "gpu_join.h"
#include "gpu_owner.h"
#include "gpu_step.h"
#include "gpu_table.h"
#include "step.h"

typedef VEC(struct gpu_item) gpu_item_vec;

/* Of one process; zero but for the first three before its first use. */
struct gpu_claim {
	struct gpu_join *join;
	struct gpu_owner *owner;
	const struct gpu_process *process; /* for names; NULL: nothing is known */
	VEC(unsigned char) comm;	   /* by name id - 1: what is known of the name */
	/* Of the step at hand. */
	gpu_item_vec items;
	VEC(const struct fbt_gpu_api *) apis;
	VEC(const struct fbt_gpu_sync *) syncs;
	VEC(const struct fbt_gpu_overhead *) overheads;
	bool is_damaged; /* another step was given something that is this one's */
};

void gpu_claim_clear(struct gpu_claim *claim);

/* A name was given to an id, perhaps another one than before. */
void gpu_claim_rename(struct gpu_claim *claim, uint32_t name);

/* What of the step's launches has not come. */
struct gpu_awaited {
	uint32_t launches; /* of kernels and graphs, without any work */
	uint32_t perhaps;  /* copies and memsets without work, which may have none to do (host to
			    * host, 0 bytes), and graphs of which some may yet come */
};

/* 0 or -ENOMEM. */
int gpu_claim_await(struct gpu_claim *claim, const struct step *step, struct gpu_awaited *awaited);

/*
 * Fills gpu, which is zero before, but for sealed, complete, and what of a flush it says. No other
 * step is given then what this one has. 0, or -ENOMEM with everything as before.
 */
int gpu_claim_take(struct gpu_claim *claim, const struct step *step, struct step_gpu *gpu);

#endif
