/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sums up stacks in folded form, one line for each distinct one, as flamegraph.pl, inferno and
 * speedscope read it:
 *
 *	llama_decode;process_ubatch;__lll_lock_wait;[futex] 300123
 *
 * From the step function inwards, then what the thread was in, and the sum in microseconds. Slow
 * calls are one source of stacks; the table does not care where they come from.
 */
#ifndef FBT_OUTPUT_FOLDED_TABLE_H
#define FBT_OUTPUT_FOLDED_TABLE_H

#include <stdint.h>
#include <stdio.h>
#include "model/window.h"

/* Most text that is kept. What finds no room is summed up by its step function and its end. */
#define FOLDED_BYTES_MAX (8u << 20)

/* A stack, and how long the thread was there. All is borrowed. */
struct folded_stack {
	const char *kind;      /* name of the step function */
	const uint32_t *codes; /* fbt_code.id, the innermost first */
	uint32_t count;
	uint16_t flags;	 /* FBT_STACK_* */
	const char *end; /* what the thread was in, shown in brackets: "futex" */
	uint64_t ns;
};

struct folded_table;

struct folded_table *folded_table__new(void); /* NULL: -ENOMEM */
void folded_table__free(struct folded_table *table);

/*
 * Frames have the names of their functions, whole; those without one are FILE+0xADDRESS, [generated
 * code], or [unknown]. A stack that is not whole or not sure has a frame that says so after its
 * step function: [cut off], [caller not found], [by frame pointers]. Names come from the target:
 * what would break the format is replaced. 0 or -ENOMEM.
 */
int folded_table__add(struct folded_table *table, const struct window *window,
		      const struct folded_stack *stack);

/* Writes the lines, sorted. Sums are rounded down. 0 or -errno. */
int folded_table__write(const struct folded_table *table, FILE *out);

#endif
