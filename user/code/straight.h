/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where to probe straight-line code. A probe on an instruction that the kernel emulates costs a
 * breakpoint; on any other, a single step too, which in a guest costs ten times as much. So the
 * probe is put on the first emulated instruction that is always executed after the given one.
 */
#ifndef FBT_CODE_STRAIGHT_H
#define FBT_CODE_STRAIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"

/* Enough for the code between two branches, with a few exceptions. */
#define STRAIGHT_BYTES 192

struct straight {
	uint64_t address; /* where to probe */
	int32_t sp;	  /* the stack pointer there, minus that at the first instruction */
	bool emulated;
};

/* What the place must be. */
enum straight_flags {
	STRAIGHT_KEEPS_ARGUMENTS = 1, /* the arguments are still where the caller has put them */
	/*
	 * It is no call. Kernels before 6.18 do not push the return address of an emulated call on
	 * the shadow stack, so the thread would be killed when the callee returns.
	 */
	STRAIGHT_AVOIDS_CALLS = 2,
	STRAIGHT_KEEPS_MEMORY = 4, /* nothing was written to memory since */
};

/*
 * Finds the place for code that begins at address; size may be less than its straight part. If
 * there is no emulated instruction, or the stack pointer there is not known, the place is address
 * itself, as on other architectures than x86-64. 0; -ENOTSUP if that is a call; -EBADMSG if the
 * first bytes are not an instruction; or -ENOMEM. From uprobes.c of the kernel's arch/x86,
 * Linux 6.1 and newer.
 */
int straight_find(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address,
		  unsigned int flags, struct straight *straight);

#endif
