/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Looks from outside at processes in which a call of a step is open for longer than 20 ms and its
 * limit, once a call, or in which a step hangs: see look/look.h. At most ten looks a second, and
 * two at hangs; together they take at most a twentieth of a CPU.
 */
#ifndef FBT_STREAM_LOOKS_H
#define FBT_STREAM_LOOKS_H

#include "kernel/shared.h"
#include "kernel/task_list.h"
#include "model/event.h"

struct looks;
struct peers;
struct stacks;

struct looks_options {
	bool at_calls;	     /* calls of steps are recorded */
	bool calls_known;    /* slots have the calls of all threads */
	struct peers *peers; /* is told what threads that hold locks wait in */
	/* Sends the name of a thread, if it was not sent yet. */
	void (*name)(void *ctx, uint32_t tgid, uint32_t tid);
	void *ctx;
};

/* All are borrowed; list NULL: there are no looks. NULL: -ENOMEM. */
struct looks *looks__new(const struct shared *shared, struct task_list *list, struct stacks *stacks,
			 const struct record_output *output, const struct looks_options *options);
void looks__free(struct looks *looks);

/* To be called every few ms: looks at the calls that have become due. */
void looks__turn(struct looks *looks, uint64_t now_ns);

/* Whether the pause after the last look at a hang is not over. */
bool looks__must_wait(const struct looks *looks, uint64_t now_ns);

/* Looks at a step that hangs, before its FBT_EVENT_HANG is sent; in the pause it is counted only.
 */
void looks__at_hang(struct looks *looks, const struct fbt_hang *hang);

/* Sends how many looks there were, if there were any. */
void looks__send_counts(struct looks *looks);

#endif
