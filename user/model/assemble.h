/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Assembles records into steps, each with its calls, and into the model of the window. */
#ifndef FBT_MODEL_ASSEMBLE_H
#define FBT_MODEL_ASSEMBLE_H

#include <stdbool.h>
#include "model/step.h"
#include "model/window.h"

struct assembler;

/*
 * Receives the results. The functions return 0 or -errno, which is passed up. All but on_step may
 * be NULL.
 */
struct assembler_output {
	/* step is borrowed, but on_step may take the calls out of it. */
	int (*on_step)(void *ctx, struct window *window, struct step *step);
	/*
	 * A call outside of steps, with FBT_DETAIL_ALL only. The calls of one thread come in order;
	 * those of several threads come late and in no order.
	 */
	int (*on_call)(void *ctx, const struct window *window, const struct fbt_call *call);
	void (*on_manual)(void *ctx); /* the user asks for an escalation */
	/* A step hangs: it is in window->hangs, and not among the steps yet. */
	int (*on_hang)(void *ctx, const struct window *window, const struct fbt_hang *hang);
	/* A record of fbt_gpu.h. Its facts about the process are in window->gpus by now. */
	int (*on_gpu)(void *ctx, struct window *window, const struct fbt_header *event);
	/* Everything has been passed on, and window->end_ns is set. */
	int (*on_end)(void *ctx, struct window *window);
	bool is_endless; /* of the window */
	void *ctx;
};

struct assembler *assembler__new(const struct assembler_output *output); /* NULL: -ENOMEM */
void assembler__free(struct assembler *assembler);

/*
 * Takes one record that decode_event() has checked. The calls of a thread must come in order, and
 * the calls of a step before the step. Records before FBT_EVENT_WINDOW, and further records of that
 * type, are skipped and counted. Returns 0 or -errno; after an error, as much of the record as
 * possible has been processed.
 */
int assembler__push(struct assembler *assembler, const struct fbt_header *event);

/* Counts a malformed record. */
void assembler__count_skipped(struct assembler *assembler);

/* To be called at the end of the stream: passes on the remaining calls, sets end_ns and cut_off. */
int assembler__flush(struct assembler *assembler);
const struct window *assembler__window(const struct assembler *assembler);

/*
 * Before assembler__flush: the window as if its records were cut off here. What it points to stays
 * the assembler's, and is valid until the next record.
 */
struct window assembler__window_so_far(const struct assembler *assembler);

#endif
