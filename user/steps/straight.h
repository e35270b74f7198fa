/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where to probe straight-line code. A probe on an instruction that the kernel emulates costs a
 * breakpoint; on any other, a single step too, which in a guest costs ten times as much. So the
 * probe is put on the first emulated instruction that is always executed after the given one.
 */
#ifndef FBT_STEPS_STRAIGHT_H
#define FBT_STEPS_STRAIGHT_H

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

enum straight_purpose {
	STRAIGHT_ENTRY, /* the arguments must still be where the caller has put them */
	STRAIGHT_SITE,
};

/*
 * Finds the place for code that begins at address; size may be less than its straight part. If
 * there is no emulated instruction, or the stack pointer there is not known, the place is address
 * itself. 0; -ENOTSUP for an architecture other than x86-64; -EBADMSG if the first bytes are not an
 * instruction; or -ENOMEM. From uprobes.c of the kernel's arch/x86, Linux 6.1 and newer.
 */
int straight_find(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address,
		  enum straight_purpose purpose, struct straight *straight);

#endif
