/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What target finds and the loader attaches to. */
#ifndef FBT_STEP_FUNCTION_H
#define FBT_STEP_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>
#include "step_spec.h"
#include "vec.h"

/*
 * One function to probe. Offsets are those of the file (what uprobes take), address is the ELF
 * virtual address. fd is an open descriptor of the very file that is mapped (deleted files and
 * other mount namespaces included): attach through /proc/self/fd/FD.
 */
struct step_function {
	char *name;   /* demangled, without arguments and hash; "PATH+0xADDR" for a nameless one */
	char *symbol; /* as in the ELF file; NULL if nameless */
	char *path;   /* as the target sees it */
	int fd;
	uint64_t device; /* st_dev and st_ino of fd: what makes a function the same one */
	uint64_t inode;
	uint64_t address;
	uint64_t size;
	uint64_t begin_offset;	    /* past an endbr64 / bti */
	VEC(uint64_t) exit_offsets; /* returns and tail jumps; empty with a uretprobe */
	/* Beside exit_offsets: address that a direct tail jump goes to, else 0. Empty for USDT. */
	VEC(uint64_t) exit_targets;
	bool keeps_frame; /* arm64: while it runs, x29 leads to a record of its caller's x29, x30 */
	bool uretprobe;
	bool builtin;
	bool usdt; /* begin and exit_offsets are USDT locations, maybe several begins */
	VEC(uint64_t) usdt_begins;
	uint64_t begin_ref_ctr; /* file offset of the USDT semaphore, 0 if none */
	uint64_t end_ref_ctr;
	struct step_arg args[FBT_ARG_COUNT];
	uint32_t arg_count;
};

typedef VEC(struct step_function *) function_vec;

struct step_function *target_function_new(void);	   /* fd is -1; NULL: -ENOMEM */
void target_function_free(struct step_function *function); /* closes fd */

/* Appends an argument unless there are FBT_ARG_COUNT already or one of that name. */
void target_function_add_arg(struct step_function *function, const struct step_arg *arg);

#endif
