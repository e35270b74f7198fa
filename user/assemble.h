/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Records to steps and to the window's model. */
#ifndef FBT_ASSEMBLE_H
#define FBT_ASSEMBLE_H

#include "step.h"
#include "window.h"

struct assembler;

/*
 * Where results go. step is freed by the assembler when on_step returns; its calls may be taken. 0
 * or -errno, passed up. on_call is given calls outside of steps, if the detail is FBT_DETAIL_ALL:
 * in order per thread, late and in no order between threads (pending.h says when). It may be NULL.
 */
struct assembler_output {
	int (*on_step)(void *ctx, struct window *window, struct step *step);
	int (*on_call)(void *ctx, const struct window *window, const struct fbt_call *call);
	void (*on_manual)(void *ctx); /* the user asks for an escalation; may be NULL */
	/* A record of fbt_gpu.h; what it says of the process is in window->gpus. May be NULL. */
	int (*on_gpu)(void *ctx, struct window *window, const struct fbt_header *event);
	/* All has been passed on, and window->end_ns is set; may be NULL. */
	int (*on_end)(void *ctx, struct window *window);
	void *ctx;
};

struct assembler *assembler__new(const struct assembler_output *output); /* NULL: -ENOMEM */
void assembler__free(struct assembler *assembler);

/*
 * Takes one checked record. Per thread, calls come in order and all calls of a step come before it;
 * nothing else is assumed about order, but that records before FBT_EVENT_WINDOW, and a second one
 * of it, are skipped and counted. 0 or -errno; the record has been taken as far as possible.
 */
int assembler__push(struct assembler *assembler, const struct fbt_header *event);

/* A record that was not sound. */
void assembler__count_skipped(struct assembler *assembler);

/* End of the stream: sets window->end_ns and cut_off, passes remaining calls on. */
int assembler__flush(struct assembler *assembler);
const struct window *assembler__window(const struct assembler *assembler);

#endif
