/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What --explain has found out about the cause of a step, in words and for programs. Pure. */
#ifndef FBT_JUDGE_EXPLAINED_H
#define FBT_JUDGE_EXPLAINED_H

#include <stdbool.h>
#include "base/format.h"
#include "judge/cause.h"

/*
 * Which kind would explain more of such a cause, and whether it did. False: none would.
 */
bool cause_explained_by(const struct cause *cause, enum fbt_explain *kind, bool *is_explained);

/*
 * ", taken by stress-ng (pid 4711) 300 ms, its own threads 1.10 ms": who had the CPU that the step
 * waited for. Nothing if it is not known.
 */
void taken_describe(struct line *line, const struct fbt_taken *taken);

/*
 * ", woken by redis (pid 8) in sendto"; "perhaps" if it is only known that this process was sending
 * just then; ", ended by an interrupt (a timer or a device)". Nothing if it is not known, or known
 * from the records of calls.
 */
void woken_describe(struct line *line, const struct cause *cause, const struct window *window);

/*
 * "; grew: gemm_f32 <- matmul <- forward +62.0 ms, memcpy +20.0 ms": the functions in which the
 * step computed for longer than usual, the first with those that called it; "; most in
 * gemm_f32 62.0 ms" if that is not known. Nothing if it was not sampled.
 */
void grown_describe(struct line *line, const struct cause *cause, const struct window *window);

/* Room for a path, and for functions. */
#define FAULT_MAPPING_SIZE 256
#define FUNCTIONS_SIZE	   512

/* "anonymous memory (heap)", "the stack", a path; text may be used for it. */
const char *fault_mapping_text(const struct fbt_fault_site *site, const struct window *window,
			       char text[FAULT_MAPPING_SIZE]);

/*
 * "memset <- load_block <- forward": a function and its callers, up to a code that is 0 or the
 * count; "" if they are not known.
 */
void functions_text(const uint32_t *codes, uint32_t count, const struct window *window,
		    char text[FUNCTIONS_SIZE]);

/* "; counted: 8,192 of /srv/model.bin in load_block <- forward, 96 of …"; nothing if not known. */
void fault_sites_describe(struct line *line, const struct cause *cause,
			  const struct window *window);

/* Whether somebody is named there. */
bool woken_has_waker(const struct fbt_woken *woken);

/* "who took the CPU", …; "" of any other number. */
const char *explain_subject(enum fbt_explain kind);

/* After a waker's stack ", 300 ms after the wait began"; nothing if after_ns is 0. */
void ended_after_add(struct line *line, uint64_t after_ns);

#endif
