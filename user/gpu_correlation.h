/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The calls of one process by correlation id, with the work that they launched, and the work that
 * waits for its call. The process chooses the ids: none of them make this slow.
 */
#ifndef FBT_GPU_CORRELATION_H
#define FBT_GPU_CORRELATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "fbt_gpu.h"

/* Calls of one correlation that can be found, the latest: more than two are a wrap, or made up. */
#define JOIN_CALLS_MAX 16

struct join_call;

struct join_work {
	struct fbt_gpu_work work;
	struct join_call *call; /* that launched it; NULL: not known (yet) */
	uint64_t step;		/* number of the step it was given to; 0: none */
	LIST_ENTRY(join_work) in_list;
};

LIST_HEAD(join_work_list, join_work);

struct join_call {
	struct fbt_gpu_api api;
	struct join_work_list works; /* of a nested call none: they are the outer one's */
	uint64_t works_end_ns;	     /* the latest of theirs */
	uint64_t step;		     /* number of the step it was given to; 0: none */
	struct join_call *older;     /* of the same correlation */
	struct join_call *outer;     /* of a nested call, while that is kept */
	uint32_t news;		     /* gpu_join.turn when the latest of its work was found */
	bool has_work;		     /* also if that is not kept any more */
	bool is_kept;		     /* it is in the timeline, else only its work is left */
};

/* Launches of a kernel, graph, copy or memset that did not fail: work is to come of them. */
bool join_call_is_launch(const struct join_call *call);

/* work is in no list before. turn: see join_call.news. */
void join_call_give_work(struct join_call *call, struct join_work *work, uint32_t turn);

/* What is known of one correlation. */
struct join_ids {
	uint32_t correlation;
	uint32_t call_count;
	struct join_call *calls; /* the latest first, linked by older */
	struct join_work_list waiting;
};

/* Adds a call. One of the driver inside of one of the runtime is nested in that. */
void join_ids_add(struct join_ids *ids, struct join_call *call, uint32_t turn);

/* Takes a call out, if it is there; no other points to it then. */
void join_ids_forget(struct join_ids *ids, struct join_call *call);

/* Of the calls, of which there is one: the latest that began by then, or the one around it; if none
 * did, the first. */
struct join_call *join_ids_pick(const struct join_ids *ids, uint64_t time_ns);

struct join_map;

/* NULL: -ENOMEM. */
struct join_map *join_map__new(void);
void join_map__free(struct join_map *map);

/* NULL if nothing of it is kept. Valid until the next touch or settle. */
struct join_ids *join_map__find(const struct join_map *map, uint32_t correlation);

/* The same, made if it is not there; something has to be put into it. NULL: -ENOMEM. */
struct join_ids *join_map__touch(struct join_map *map, uint32_t correlation);

/* Forgets it if it has neither calls nor work. */
void join_map__settle(struct join_map *map, struct join_ids *ids);

#endif
