/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The stacks of a process' slow calls: through which of its code they could be followed. */
#ifndef FBT_COMMANDS_DOCTOR_STACKS_H
#define FBT_COMMANDS_DOCTOR_STACKS_H

#include "base/findings.h"
#include "options.h"

#define DOCTOR_CODE_NAMES 192

/* Some files of code: how many, and the names of the first ones, as a list. */
struct doctor_code {
	size_t count;
	char names[DOCTOR_CODE_NAMES];
};

struct doctor_stacks {
	bool taken;		    /* calls are recorded, so that there are stacks */
	int err;		    /* of reading the memory map: nothing else is known */
	size_t all;		    /* files of code */
	struct doctor_code deleted; /* cannot be read: no path leads to them any more */
	struct doctor_code
		hidden; /* cannot be read: their paths lead elsewhere, or are forbidden */
	struct doctor_code no_elf;
	struct doctor_code tableless; /* without .eh_frame */
	struct doctor_code nameless;  /* without the names of local functions */
	size_t generated;	      /* mappings of code that is in no file */
	bool other_mounts;	      /* it is in another mount namespace than the tool */
	bool may_restore;	      /* the tool has CAP_CHECKPOINT_RESTORE, or CAP_SYS_ADMIN */
};

/* Reads /proc and the headers of the files. */
void doctor_stacks_read(struct doctor_stacks *stacks, uint32_t tgid, const struct options *options);

/* Pure. */
void doctor_stacks_judge(const struct doctor_stacks *stacks, struct findings *checks);

#endif
