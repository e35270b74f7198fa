/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Merge's view of one process with GPU records: when a step's records are all there, and how much
 * of them was lost. */
#ifndef FBT_MERGE_PROCESS_H
#define FBT_MERGE_PROCESS_H

#include <stdbool.h>
#include <sys/queue.h>
#include "gpu_claim.h"
#include "gpu_step.h"
#include "merge_limits.h"
#include "step.h"
#include "window.h"

struct merge_process;

/* A step that waits for its records, or for a step before it. */
struct held_step {
	struct step step;
	struct merge_process *process; /* NULL: it waits for others only */
	bool sealed;
	uint32_t flushes; /* that came later than its end */
	STAILQ_ENTRY(held_step) in_all;
	TAILQ_ENTRY(held_step) in_process; /* until it is sealed */
};

STAILQ_HEAD(held_queue, held_step);
TAILQ_HEAD(held_list, held_step);

/* Records were lost of what happened in between. */
struct merge_loss {
	uint64_t from_ns;
	uint64_t until_ns;
};

struct merge_process {
	uint32_t tgid;
	uint64_t timeout_ns;
	struct gpu_claim claim;
	bool armed;		     /* records flow, or flowed */
	bool live;		     /* they still do */
	uint64_t armed_ns;	     /* they began … */
	uint64_t ended_ns;	     /* … and ended, if they do not flow */
	struct fbt_gpu_flush flush;  /* the latest; zero before */
	struct fbt_gpu_flush shared; /* what of its totals steps were told already */
	bool last;		     /* no flush comes any more */
	bool late;		     /* something came that a sealed step should have had */
	uint32_t patience;	     /* flushes that have to come for a step */
	uint64_t drop_ns;	     /* what ended by then may leave at the next flush */
	VEC(struct merge_loss) losses;
	struct held_list waiting; /* not sealed */
	struct gpu_counts *counts;
	struct gpu_counts spare_counts; /* … of a process that the window does not know */
	struct gpu_left left;		/* to be passed on as of no step */
};

/* NULL: -ENOMEM. */
struct merge_process *merge_process__new(uint32_t tgid, bool strict, uint64_t timeout_ns);
void merge_process__free(struct merge_process *process);

/* Finds what the window knows of it, once it does: its names, and where its counts are kept. */
void merge_process__look_up(struct merge_process *process, const struct window *window);

/* Its steps have GPU figures. */
bool merge_process__covers(const struct merge_process *process, const struct step *step);

/* A record of any type. 0 or -ENOMEM: the record is lost, and steps of that time are not complete.
 */
int merge_process__add(struct merge_process *process, const struct fbt_header *event);

/* A step has come. It waits afterwards, or is sealed: without figures if -ENOMEM. */
int merge_process__add_step(struct merge_process *process, struct held_step *held);

/*
 * Seals: gives a step its figures; without memory for them it has none: -ENOMEM. The first seals
 * what is ready to be, the second all that waits since no more comes, for that reason.
 */
int merge_process__seal_ready(struct merge_process *process);
int merge_process__seal_all(struct merge_process *process, enum gpu_seal seal);
int merge_process__seal(struct merge_process *process, struct held_step *held, enum gpu_seal seal);

/* Moves into left what no step can have any more; all: everything. 0 or -ENOMEM. */
int merge_process__drop(struct merge_process *process, bool all);

/* The same until there is room for more; seals steps for it. */
int merge_process__make_room(struct merge_process *process);

#endif
