/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Turns copied stacks into records: unwinds them, names the functions, and remembers which places
 * of code were sent. No byte of a stack is kept.
 */
#ifndef FBT_STACKS_STACKS_H
#define FBT_STACKS_STACKS_H

#include "fbt_shared.h"
#include "model/event.h"

struct stacks;

/* output is borrowed. NULL: -ENOMEM. */
struct stacks *stacks__new(const struct record_output *output);
void stacks__free(struct stacks *stacks);

/* Sends the FBT_EVENT_STACK of a place, after an FBT_EVENT_CODE for what is new in it. */
void stacks__take(struct stacks *stacks, const struct fbt_stack_place *place, uint64_t now_ns);

/*
 * The innermost function with a name on the stack of a place: the id of its FBT_EVENT_CODE, which
 * is sent if it is new. 0: none has a name, or there is no room.
 */
uint32_t stacks__function(struct stacks *stacks, const struct fbt_stack_place *place,
			  uint64_t now_ns);

/* The process has ended, or runs another program. */
void stacks__forget(struct stacks *stacks, uint32_t tgid);

#endif
