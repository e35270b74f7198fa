/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where a function is left. A compiler may split a function: its unlikely code lies elsewhere and
 * is jumped to and back. Jumps between the pieces are no exits, jumps to other functions are.
 */
#ifndef FBT_EXITS_H
#define FBT_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"
#include "vec.h"

struct code_range {
	uint64_t address;
	uint64_t size;
};

enum region_kind {
	REGION_UNKNOWN,	 /* nothing is known of the address */
	REGION_FUNCTION, /* a function with a name of its own */
	REGION_PART,	 /* by its name a piece of the function in question */
	REGION_FRAMED,	 /* known extent, no name, entered with a frame in place: a piece or PLT */
	REGION_NAMELESS, /* known extent, no name: a piece or a function, the code tells */
};

/* What exits_find may ask about the file. */
struct exits_source {
	enum fbt_arch arch;
	/* 0 or -errno */
	int (*read)(void *ctx, uint64_t address, void *data, size_t size);
	/* What lies at address, and from where to where; range is not set for REGION_UNKNOWN. */
	enum region_kind (*region)(void *ctx, uint64_t address, struct code_range *range);
	void *ctx;
};

struct exits {
	uint64_t begin; /* where to probe the entry: past a branch-target marker if that is safe */
	VEC(uint64_t) addresses;
	VEC(uint64_t) targets; /* beside addresses: where a direct jump goes, 0 for all others */
	bool keeps_frame;      /* arm64: it keeps a frame record, x29 leads to it */
	char reason[160];      /* of -ENOTSUP: why there is no safe exit */
};

/*
 * Finds every instruction with which the function in ranges (its body first, then known pieces)
 * returns or jumps out. 0; -ENOTSUP with a reason if that cannot be told for sure; -ENOMEM, -EIO or
 * -ERANGE. Free addresses and targets with vec_free, on failure too.
 */
int exits_find(struct exits *exits, const struct exits_source *source,
	       const struct code_range *ranges, size_t count);

#endif
