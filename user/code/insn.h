/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Decodes machine code: how each instruction changes control flow. */
#ifndef FBT_STEPS_INSN_H
#define FBT_STEPS_INSN_H

#include <stddef.h>
#include <stdint.h>
#include "base/vec.h"
#include "fbt_event.h"

enum insn_kind {
	INSN_NEXT, /* continues with the next instruction */
	INSN_NOP,  /* the same, and does nothing; also used as padding after the end */
	INSN_CALL, /* continues with the next one, unless the callee does not return */
	INSN_RETURN,
	INSN_JUMP,     /* to target */
	INSN_BRANCH,   /* to target or to the next one */
	INSN_SWITCH,   /* jump through a jump table, which stays in the function */
	INSN_LEAVE,    /* indirect jump that is a tail call */
	INSN_TABLE32,  /* looks like a switch: target is a table of s32, relative to the table */
	INSN_TABLE64,  /* the same with a table of addresses, which may also be of functions */
	INSN_INDIRECT, /* any other indirect jump */
	INSN_STOP,     /* traps, so nothing follows */
	INSN_FAR,      /* cannot be probed: far or interrupt return, far jump, retaa … */
};

struct insn {
	uint64_t address;
	/*
	 * Of INSN_JUMP, INSN_BRANCH, INSN_TABLE32 and INSN_TABLE64. Of INSN_LEAVE: the entry of the
	 * GOT; 0 if that is not known.
	 */
	uint64_t target;
	uint8_t size;
	uint8_t kind;	  /* enum insn_kind */
	uint8_t restored; /* for an indirect jump: an epilogue comes just before it */
	uint8_t frame;	  /* arm64: sets x29 to a record of the caller's x29 and x30 */
};

typedef VEC(struct insn) insn_vec;

/*
 * Decodes size bytes of code at address and appends an entry for each instruction. 0; -EBADMSG if
 * bytes are not an instruction, and *bad is their address; or -ENOMEM.
 */
int insn_decode(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address,
		insn_vec *insns, uint64_t *bad);

/* Size of the branch-target marker (endbr64, bti) at the start of code; 0 if there is none. */
size_t insn_marker_size(enum fbt_arch arch, const uint8_t *code, size_t size);

#endif
