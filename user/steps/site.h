/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A call site of a step function: the code after a call, where control is back in the caller. A
 * probe there ends the step whatever the function did in between: returns, tail calls, jumps
 * through registers.
 */
#ifndef FBT_STEPS_SITE_H
#define FBT_STEPS_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include "proc/memory.h"
#include "steps/image.h"

struct step_site {
	char *path; /* of the caller's file, as the target sees it */
	int fd;
	uint64_t device; /* st_dev and st_ino of fd; with offset they identify the place */
	uint64_t inode;
	uint64_t offset; /* file offset of the probe */
	int32_t sp;	 /* the stack pointer there, minus that at the function's entry */
	bool emulated;	 /* see code/straight.h */
};

/*
 * Finds the place for a return address of process tgid. keeps_memory: before anything is written to
 * memory, which may be what the function has left there. 0, and the caller frees the site; or
 * -errno, without a message: -ENOENT if the address is in no mapped file (JIT code), -EFAULT if the
 * code there was changed in memory.
 */
int step_site_find(struct step_site *site, uint32_t tgid, uint64_t address, bool keeps_memory);

/* A return address. */
struct return_address {
	uint64_t address; /* as its file has it */
	uint64_t memory;  /* in the process */
	uint64_t left;	  /* bytes of code from there to the end of the mapping */
};

/*
 * The same for a return address in an open image of the process. Tables of the image are read when
 * they are first needed. memory: by which the process is read.
 */
int step_site_find_in(struct step_site *site, struct image *image, uint32_t tgid,
		      struct memory *memory, const struct return_address *at, bool keeps_memory);
void step_site_clear(struct step_site *site); /* closes fd */

#endif
