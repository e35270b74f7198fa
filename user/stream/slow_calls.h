/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Stacks of calls of steps that took longer than usual: sets the limits, and turns what the kernel
 * side has copied into records.
 */
#ifndef FBT_KERNEL_SLOW_CALLS_H
#define FBT_KERNEL_SLOW_CALLS_H

#include "kernel/shared.h"
#include "model/event.h"
#include "elf/symbol_files.h"

struct slow_calls;
struct stacks;

/* shared, output and what symbols names are borrowed. NULL: -ENOMEM. */
struct slow_calls *slow_calls__new(struct shared *shared, const struct record_output *output,
				   const struct symbol_files *symbols);
void slow_calls__free(struct slow_calls *slow);

/* A call in a step that was sent, and the end of a step. */
void slow_calls__add_call(struct slow_calls *slow, const struct fbt_call *call);
void slow_calls__add_step(struct slow_calls *slow, const struct fbt_step *step);

/* Sends the stacks that are ready, and wipes them. */
void slow_calls__drain(struct slow_calls *slow);
void slow_calls__discard(struct slow_calls *slow); /* wipes them only */

/* A thread has ended; a process has ended, or runs another program. */
void slow_calls__forget_thread(struct slow_calls *slow, uint32_t tid);
void slow_calls__forget(struct slow_calls *slow, uint32_t tgid);

/* What unwinds its stacks, borrowed: the places of code of a stream are numbered together. */
struct stacks *slow_calls__stacks(const struct slow_calls *slow);

/* Sends how many stacks were taken, and how many not, if there were any. */
void slow_calls__send_counts(struct slow_calls *slow);

/* Sends what was sampled of a step (bpf/samples.bpf.h), right before the step itself. */
void slow_calls__send_samples(struct slow_calls *slow, const struct fbt_step *step);

#endif
