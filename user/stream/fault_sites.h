/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where steps have their page faults: bpf/fault_sites.bpf.h counts them, on threads whose events
 * are open here.
 */
#ifndef FBT_STREAM_FAULT_SITES_H
#define FBT_STREAM_FAULT_SITES_H

#include "fbt_shared.h"
#include "model/event.h"

/* Threads whose faults are counted. map: the descriptor of fault_sums. */
struct fault_events {
	uint32_t tids[FBT_FAULT_THREADS];
	int fds[FBT_FAULT_THREADS][2];
	uint32_t count; /* of threads */
};

/*
 * programs: for minor and for major faults. 0, also if it is counted already; -ENOSPC; -ESRCH; or
 * another -errno.
 */
int fault_events_add(struct fault_events *events, int map, const int programs[2], uint32_t tid);
/* Nothing if it is not counted. */
void fault_events_remove(struct fault_events *events, int map, uint32_t tid);
void fault_events_clear(struct fault_events *events, int map);

struct fault_sites;

/* map: the descriptor of fault_sums; -1: nothing is ever counted. NULL: no memory. */
struct fault_sites *fault_sites__new(int map, const struct record_output *output);
void fault_sites__free(struct fault_sites *sites);

/* The functions of a place: that which faulted, and its callers. codes ends with 0. */
void fault_sites__name(struct fault_sites *sites, const struct fbt_stack_place *place,
		       const uint32_t codes[FBT_FAULT_CALLERS]);

/* Sends those of a step, right before the step itself, if they were counted. */
void fault_sites__send(struct fault_sites *sites, const struct fbt_step *step);

#endif
