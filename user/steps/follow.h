/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Follows the jumps by which a function leaves for others, in a process: directly, through the PLT
 * and the GOT, into other files, several in a row. A call of the function ends at the returns of
 * those that it leads to. x86-64 only.
 */
#ifndef FBT_STEPS_FOLLOW_H
#define FBT_STEPS_FOLLOW_H

#include "base/vec.h"
#include "steps/resolve.h"

/* Most functions that are looked at, and most places in them. */
#define FOLLOW_FUNCTIONS_MAX 32
#define FOLLOW_PLACES_MAX    256

struct follow_file {
	char *path; /* as the process sees it */
	int fd;
	uint64_t device; /* st_dev and st_ino of fd */
	uint64_t inode;
};

enum follow_kind {
	FOLLOW_OWN,    /* a return of the function itself */
	FOLLOW_RETURN, /* a return of one that it leads to, which others may call too */
	FOLLOW_JUMP,   /* a jump that is not followed: where the call ends then is not known */
};

struct follow_place {
	uint32_t file;
	enum follow_kind kind;
	uint64_t offset;  /* in the file */
	uint64_t address; /* in the process's memory */
	uint32_t operand; /* of a FOLLOW_JUMP: where its target is found when it is hit; or 0 */
};

#define FOLLOW_REASON_BYTES 256

struct follow {
	VEC(struct follow_file) files;
	VEC(struct follow_place) places;
	uint32_t functions; /* that it leads to, without itself */
	uint32_t jumps;	    /* places that are FOLLOW_JUMP */
	bool pointers;	    /* some of these have an operand */
	/* Why one of these is not followed, or, with -ENOTSUP, the function itself. */
	char reason[FOLLOW_REASON_BYTES];
};

/*
 * Finds where calls of function end in process tgid. 0; -ENOTSUP, with a reason, if that cannot be
 * told of any of them, not even when they jump; or -errno, without a reason. Free the result with
 * follow_clear, also on failure.
 */
int follow_exits(struct follow *follow, uint32_t tgid, const struct step_function *function);

/* The same for the function whose entry is at address in the process's memory. */
int follow_entry(struct follow *follow, uint32_t tgid, uint64_t address);
void follow_clear(struct follow *follow); /* closes the files */

#endif
