/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The ways out of a function: returns, and jumps to other functions. Pure. */
#ifndef FBT_BASE_WAYS_H
#define FBT_BASE_WAYS_H

#include <stdint.h>

/* How a function leaves. */
#define WAYS_NAMES 2
struct ways_out {
	uint64_t returns;
	uint64_t tail_calls;
	uint64_t pointers;	       /* those of them through a register or memory */
	uint64_t targets;	       /* functions that the others lead to */
	const char *names[WAYS_NAMES]; /* of the first of these; NULL: not known */
};

/*
 * "3 returns; 2 tail calls to decode and encode"; "" if it makes no tail call. Writes to buffer and
 * returns it.
 */
#define FORMAT_WAYS_MAX 256
const char *format_ways_out(char buffer[FORMAT_WAYS_MAX], const struct ways_out *ways);

#endif
