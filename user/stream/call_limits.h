/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How long a call of a step may take before its stack is copied (bpf/stacks.bpf.h): twice what the
 * longest call of that number usually takes in a step of that kind, and 1 ms at least. And how long
 * the calls of a category may take together before the stack of one of them is copied: the same for
 * their sum. Usual is the median over the last steps; a step without such a call counts as 0.
 */
#ifndef FBT_STREAM_CALL_LIMITS_H
#define FBT_STREAM_CALL_LIMITS_H

#include <stdint.h>
#include "fbt_event.h"

struct call_limits;

/* table: that of the kernel side, FBT_KIND_COUNT * FBT_LIMITS, borrowed. NULL: -ENOMEM. */
struct call_limits *call_limits__new(uint64_t *table);
void call_limits__free(struct call_limits *limits);

/* A call that a thread made in a step, at any time before that step is added. */
void call_limits__add_call(struct call_limits *limits, uint32_t tid, uint32_t nr, uint64_t start_ns,
			   uint64_t ns);

/* A step that has ended: its calls have been added, and perhaps those of later steps too. */
void call_limits__add_step(struct call_limits *limits, uint32_t tid, uint32_t kind,
			   uint64_t start_ns, uint64_t end_ns);

/* The time in calls of a step that was added last, by category. */
void call_limits__add_sums(struct call_limits *limits, uint32_t kind,
			   const struct fbt_sum sums[FBT_CATEGORY_COUNT]);

/* The thread has ended: it makes no step of the calls that were added. */
void call_limits__forget(struct call_limits *limits, uint32_t tid);

#endif
