/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Machine code to what each instruction does to the flow of control. Pure. */
#ifndef FBT_FLOW_H
#define FBT_FLOW_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"
#include "vec.h"

enum flow_kind {
	FLOW_NEXT, /* goes on with the next instruction */
	FLOW_NOP,  /* the same, and does nothing: also padding behind the end */
	FLOW_CALL, /* goes on with the next one, unless what it calls does not return */
	FLOW_RETURN,
	FLOW_JUMP,     /* to target */
	FLOW_BRANCH,   /* to target or to the next one */
	FLOW_SWITCH,   /* jump through a jump table: stays in the function */
	FLOW_LEAVE,    /* indirect jump that is a tail call */
	FLOW_TABLE32,  /* looks like a switch: target is a table of s32, relative to the table */
	FLOW_TABLE64,  /* the same with a table of addresses, which may be functions as well */
	FLOW_INDIRECT, /* indirect jump that may be anything */
	FLOW_STOP,     /* traps: nothing goes on */
	FLOW_FAR,      /* cannot be probed: far or interrupt return, far jump, retaa and its like */
};

struct flow {
	uint64_t address;
	uint64_t target; /* of FLOW_JUMP, FLOW_BRANCH and FLOW_TABLE */
	uint8_t size;
	uint8_t kind;	  /* enum flow_kind */
	uint8_t restored; /* of an indirect jump: the frame was taken down just before it */
	uint8_t frame;	  /* arm64: makes x29 point to a record of the caller's x29 and x30 */
};

typedef VEC(struct flow) flow_vec;

/*
 * Decodes size bytes of code at address from end to end and appends an entry for each instruction.
 * 0, -EBADMSG for bytes that are no instruction (*bad is their address), -ENOMEM.
 */
int flow_decode(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address,
		flow_vec *flows, uint64_t *bad);

/* Bytes of a branch-target marker (endbr64, bti) that code begins with; 0 if there is none. */
size_t flow_marker_size(enum fbt_arch arch, const uint8_t *code, size_t size);

/* flow_decode for each architecture. */
int flow_decode_x86(const uint8_t *code, size_t size, uint64_t address, flow_vec *flows,
		    uint64_t *bad);
int flow_decode_arm64(const uint8_t *code, size_t size, uint64_t address, flow_vec *flows,
		      uint64_t *bad);

#endif
