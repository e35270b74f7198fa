/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How long a call of a step may take before its stack is copied (bpf/stacks.bpf.h): twice what the
 * longest call of that number usually takes in a step of that kind, and 1 ms at least. Usual is the
 * median over the last steps; a step without such a call counts as 0.
 */
#ifndef FBT_KERNEL_CALL_LIMITS_H
#define FBT_KERNEL_CALL_LIMITS_H

#include <stdint.h>

struct call_limits;

/* table: that of the kernel side, FBT_KIND_COUNT * FBT_NR_COUNT, borrowed. NULL: -ENOMEM. */
struct call_limits *call_limits__new(uint64_t *table);
void call_limits__free(struct call_limits *limits);

/* A call that a thread made in a step. */
void call_limits__add_call(struct call_limits *limits, uint32_t tid, uint32_t nr, uint64_t ns);

/* The step has ended whose calls were added. */
void call_limits__add_step(struct call_limits *limits, uint32_t tid, uint32_t kind);

/* The thread has ended: it makes no step of the calls that were added. */
void call_limits__forget(struct call_limits *limits, uint32_t tid);

#endif
