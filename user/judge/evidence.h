/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which calls are shown: those of escalated steps, of the context steps before and after them on
 * the same thread, of the first EVIDENCE_FIRST steps of each kind, and of steps in which PyTorch's
 * profiler was on; with --detail all, all calls. The calls of the last context steps of each thread
 * are held until that is known.
 */
#ifndef FBT_JUDGE_EVIDENCE_H
#define FBT_JUDGE_EVIDENCE_H

#include <stdbool.h>
#include "model/step.h"
#include "model/window.h"

#define EVIDENCE_FIRST	     3
#define EVIDENCE_CONTEXT_MAX 64
/* Calls held at most; the oldest steps' go first. */
#define EVIDENCE_CALLS_MAX 262144

struct evidence;

/*
 * on_calls is given each step whose calls are to be shown, once, those of one thread in their
 * order; 0 or -errno, passed up. NULL: -ENOMEM.
 */
struct evidence *evidence__new(uint32_t context,
			       int (*on_calls)(void *ctx, const struct window *window,
					       const struct step *step),
			       void *ctx);
void evidence__free(struct evidence *evidence);

/*
 * The next step. Its calls may be taken (step->calls is empty then). 0, -ENOMEM (the step's calls
 * are not held), or the first error of on_calls; both leave the evidence usable.
 */
int evidence__push(struct evidence *evidence, const struct window *window, struct step *step,
		   bool escalated);

#endif
