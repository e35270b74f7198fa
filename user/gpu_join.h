/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The GPU records of one process, and which call launched which work. They come in any order, and
 * from a process that may have made them up: no order, no times and no correlation ids make this
 * slow or large.
 *
 * Ids of CUPTI's wrap. Work is of the latest call with its id that began before it, by what has
 * come when gpu_join__resolve is called; a call of the driver inside of one of the runtime with the
 * same id stands back for that.
 */
#ifndef FBT_GPU_JOIN_H
#define FBT_GPU_JOIN_H

#include <stdbool.h>
#include "gpu_correlation.h"
#include "gpu_step.h"
#include "gpu_table.h"
#include "gpu_timeline.h"

struct join_sync {
	struct fbt_gpu_sync sync;
	uint64_t step;
};

struct join_overhead {
	struct fbt_gpu_overhead overhead;
	uint64_t step;
};

/* Vectors of a batch, to be filled. */
struct gpu_left {
	gpu_work_vec works;
	gpu_api_vec apis;
	gpu_sync_vec syncs;
	gpu_overhead_vec overheads;
};

struct gpu_join {
	/* Of struct join_work (those without times when they came), join_call, join_sync, … */
	struct gpu_timeline *works;
	struct gpu_timeline *calls;
	struct gpu_timeline *syncs;
	struct gpu_timeline *overheads;
	struct join_map *map;	       /* by correlation */
	struct join_work_list fresh;   /* not asked for their calls yet */
	struct join_work_list orphans; /* they name no call */
	uint32_t turn;		       /* counts flushes: the owner counts it up */
	uint64_t gone_ns;	       /* what was dropped, or found no memory, ended by then */
	uint64_t known_until_ns;       /* where records without times are kept */
};

/* NULL: -ENOMEM. */
struct gpu_join *gpu_join__new(void);
void gpu_join__free(struct gpu_join *join);

/* A record of work, an API call, a sync or an overhead. counts are kept. 0 or -ENOMEM. */
int gpu_join__add(struct gpu_join *join, const struct fbt_header *event, struct gpu_counts *counts);

/*
 * Finds the calls of the work that has come. epsilon_ns: what a clock may be wrong by. late becomes
 * a call that was given to a step before this work of it came, or NULL. 0 or -ENOMEM.
 */
int gpu_join__resolve(struct gpu_join *join, uint64_t epsilon_ns, struct gpu_counts *counts,
		      const struct join_call **late);

/* The call of a correlation that was open at a time, or began last before; NULL: not known. */
const struct join_call *gpu_join__find_call(const struct gpu_join *join, uint32_t correlation,
					    uint64_t time_ns);

size_t gpu_join__count(const struct gpu_join *join);

/*
 * Drops records from the front of each timeline, those that no step was given into left: that ended
 * by until_ns, but launches that still wait for their work only if they ended by waiting_ns.
 * counts->outside is kept. 0 or -ENOMEM: some did not come into left.
 */
int gpu_join__drop_until(struct gpu_join *join, uint64_t until_ns, uint64_t waiting_ns,
			 struct gpu_counts *counts, struct gpu_left *left);

/*
 * The same until no more than so many are left, the ones that begin first out first; none that ends
 * behind until_ns.
 */
int gpu_join__drop_to(struct gpu_join *join, size_t count, uint64_t until_ns,
		      struct gpu_counts *counts, struct gpu_left *left);

#endif
