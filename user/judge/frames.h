/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Stacks in words, as all outputs show them. Pure. */
#ifndef FBT_JUDGE_FRAMES_H
#define FBT_JUDGE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include "model/window.h"

/* Room for a stack; a longer one is cut. */
#define FRAMES_SIZE 512
/* Functions that are named; of more, the outermost is the last of them. */
#define FRAMES_SHOWN 6
#define FRAMES_SHORT 3 /* within a sentence */

/*
 * "lock_wait <- forward x9 <- llama_decode": from the function that made the call to that of the
 * step. Functions of libc and of the C++ runtime at its end and, of a thread's whole stack, at its
 * begin are left out; template arguments too; a function that calls itself is named once. A
 * function without a name is FILE+0xADDRESS. Of a thread that ended a wait the call in the first
 * function is told by its offset, "evict+0x39". One of a script is "forward (model.py:42)". A stack
 * that is not whole, or not sure, says so. Cut at size (at least 1), NUL included; names come from
 * the target, so they may contain anything.
 */
void frames_describe(const struct fbt_stack *stack, const struct window *window, char *text,
		     size_t size);

/* Digits of a build-id that are shown. */
#define FRAMES_ID_MAX 128
/* Room for a list of places; what finds none is left out. */
#define UNNAMED_SIZE 1024

/*
 * "libx.so+0x2bca (BuildId: 0123…), …": the places of a stack that frames_describe has no name for,
 * also those that it leaves out for their number, each once; "" if there are none. With these a
 * symbol server can name them later. Cut at size as a whole place; the rest is as above.
 */
void frames_list_unnamed(const struct fbt_stack *stack, const struct window *window, char *text,
			 size_t size);
/* The same, with so many functions named at most. */
void frames_describe_some(const struct fbt_stack *stack, const struct window *window,
			  uint32_t shown, char *text, size_t size);
/* Whether it is the function of a kind of step. */
bool frames_is_kind(const struct code *code, const char *kind);

/*
 * How many of these codes, the innermost first, are of the step: those of a script go on to the
 * thread's first function, and end with the function of that name, a kind of step.
 */
uint32_t frames_of_step(const struct window *window, const char *kind, const uint32_t *codes,
			uint32_t count);

/* Room for the name of a function, and it: as above. Writes to name and returns it. */
#define FRAMES_NAME 512
const char *frames_name(const struct code *code, char name[FRAMES_NAME]);

#endif
