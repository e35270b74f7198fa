/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds the instructions that leave a function. A compiler may split a function into pieces: its
 * unlikely code lies elsewhere, with jumps there and back. Jumps between the pieces are no exits;
 * jumps to other functions are.
 */
#ifndef FBT_CODE_EXITS_H
#define FBT_CODE_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/vec.h"
#include "fbt_event.h"
#include "code/insn.h"
#include "code/straight.h"

struct code_range {
	uint64_t address;
	uint64_t size;
};

enum region_kind {
	REGION_UNKNOWN,	 /* nothing is known about the address */
	REGION_FUNCTION, /* another function, which has a name */
	REGION_PART,	 /* by its name a piece of the analyzed function */
	REGION_FRAMED,	 /* known extent, no name, entered with a frame in place: a piece or PLT */
	REGION_NAMELESS, /* known extent, no name: a piece or a function; depends on the code */
};

/* How exits_find() accesses the file. */
struct exits_source {
	enum fbt_arch arch;
	/* 0 or -errno */
	int (*read)(void *ctx, uint64_t address, void *data, size_t size);
	/* Kind and extent of the code at address. Does not set *range for REGION_UNKNOWN. */
	enum region_kind (*region)(void *ctx, uint64_t address, struct code_range *range);
	void *ctx;
	/*
	 * The jumps out of the function are followed, and its entry is not probed: it may leave by
	 * conditional jumps too, and jump back to its first instruction.
	 */
	bool follows;
};

/* Where a function jumps to when it leaves. */
struct exit_tail {
	uint64_t address; /* of the other function or its stub; or of an entry of the GOT */
	bool is_slot;
};

#define EXITS_TAILS_MAX 64

struct exits {
	struct straight begin; /* where to probe the entry; set even with -ENOTSUP */
	bool may_repeat; /* it may jump to its own entry and hit begin again, or that is not known
			  */
	bool never_ends; /* with -ENOTSUP: no instruction leaves the function */
	/*
	 * Number of instructions that return; that leave for another function; and those of the
	 * latter that do so through a register or memory. With -ENOTSUP only those that are
	 * certain.
	 */
	unsigned int returns;
	unsigned int tail_calls;
	unsigned int pointers;
	VEC(struct exit_tail) tails; /* each once, at most EXITS_TAILS_MAX */
	VEC(uint64_t) addresses;
	VEC(uint64_t) targets; /* parallel to addresses: target of a direct jump, else 0 */
	VEC(uint64_t) slots; /* parallel too: the entry of the GOT that it jumps through, else 0 */
	VEC(uint8_t) kinds;  /* parallel too: enum insn_kind */
	bool keeps_frame;    /* arm64: it stores a frame record, which x29 points to */
	char reason[160];    /* with -ENOTSUP: why there is no safe exit */
};

/*
 * Finds every instruction by which a function returns or jumps to another function. ranges are its
 * body and then its known pieces. 0; -ENOTSUP, with a reason, if this cannot be determined for
 * certain; or -ENOMEM, -EIO, -ERANGE. Free the result with exits_clear, also on failure.
 */
int exits_find(struct exits *exits, const struct exits_source *source,
	       const struct code_range *ranges, size_t count);
void exits_clear(struct exits *exits);

/*
 * Sets *all to whether direct jumps reach all code in the pieces except padding; pieces[0] begins
 * with the entry. If so, a jump through a register or memory is a tail call, not a computed goto,
 * because the function has no other code it could go to. 0 or -ENOMEM.
 */
int exits_reach(const insn_vec *const *pieces, size_t count, bool *all);

#endif
