/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Resolves a function of a mapped file to what can be probed: file offsets of begin and exits. */
#ifndef FBT_STEPS_RESOLVE_H
#define FBT_STEPS_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "base/ways.h"
#include "code/future.h"
#include "steps/image.h"
#include "steps/spec.h"

/*
 * One function to probe. Offsets are file offsets, as uprobes need them; address is the ELF virtual
 * address. fd is the mapped file itself, even if that was deleted or is in another mount namespace,
 * so probes are attached through /proc/self/fd/FD.
 */
struct step_function {
	char *name;   /* demangled, without arguments and hash; "PATH+0xADDR" without a symbol */
	char *symbol; /* as in the ELF file; or NULL */
	char *alone;  /* see step_function_alone() */
	char *path;   /* as the target sees it */
	int fd;
	uint64_t device; /* st_dev and st_ino of fd; with address they identify the function */
	uint64_t inode;
	uint64_t address;
	uint64_t size;
	uint64_t begin_offset; /* on the entry or soon after it */
	int32_t begin_sp;      /* the stack pointer there, minus that at the entry */
	bool begin_emulated;   /* see code/straight.h */
	/* Returns; empty with a uretprobe, or if only its callers tell its end. */
	VEC(uint64_t) exit_offsets;
	bool keeps_frame; /* arm64: it stores a record of the caller's x29, x30; x29 points to it */
	/*
	 * Its steps can be ended at its call sites, where it returns to. They become known when it
	 * is called. x86-64 only. Without exit_offsets there is no other way.
	 */
	bool has_sites;
	bool may_repeat; /* see struct exits; also by way of functions that it jumps to */
	/* Return instructions, and those by which it leaves for another function (struct exits). */
	unsigned int returns;
	unsigned int tail_calls;
	unsigned int pointers;
	unsigned int tail_count; /* functions that it jumps to directly or through the GOT */
	char *tails[WAYS_NAMES]; /* names of some of them; NULL: there are no more */
	struct future future;	 /* FUTURE_KNOWN: a step is all polls of one future */
	bool uretprobe;
	bool builtin;
	/*
	 * Found by a text only, and not measured yet: it may be no step
	 * (user/targets/text_check.h).
	 */
	bool unverified;
	bool usdt;		/* usdt_begins and exit_offsets are USDT locations */
	bool is_python;		/* begin_offset and exit_offsets are markers (fbt_python.h) */
	uint64_t raised_offset; /* Python: the exit that only exceptions pass */
	VEC(uint64_t) usdt_begins;
	uint64_t begin_ref_ctr; /* file offset of the USDT semaphore, 0 if none */
	uint64_t end_ref_ctr;
	struct step_arg args[FBT_ARG_COUNT];
	uint32_t arg_count;
};

typedef VEC(struct step_function *) function_vec;

struct step_function *step_function_new(void);		 /* fd is -1; NULL: -ENOMEM */
void step_function_free(struct step_function *function); /* closes fd */
void step_functions_free(function_vec *functions);	 /* all of them; empties the vector */

/*
 * What --step takes for this function and no other: for candidates name, symbol or "PATH+0xADDR",
 * the first of them that no other candidate has; else name.
 */
const char *step_function_alone(const struct step_function *function);

/* How it returns or jumps to other functions, for format_ways_out(). Names are borrowed. */
struct ways_out step_function_ways_out(const struct step_function *function);

/* Sets path, fd, device and inode to those of image. 0 or -errno. */
int step_function_set_file(struct step_function *function, const struct image *image);

/* Appends an argument, unless there are FBT_ARG_COUNT or there is one with that name. */
void step_function_add_arg(struct step_function *function, const struct step_arg *arg);

#define RESOLVE_REASON_BYTES 256

/*
 * Makes a step function of the code at address; symbol may be NULL. 0 or -errno, with a reason but
 * without a message: -ENOTSUP if its end cannot be told, -ENOENT if the extent of the function is
 * not known, -ERANGE if address is not code.
 */
int resolve_function(struct step_function **function, const struct image *image,
		     const struct elf_symbol *symbol, uint64_t address, bool uretprobe,
		     char reason[RESOLVE_REASON_BYTES]);

/*
 * Finds the exits of the function whose code is body in image, to follow its jumps (exits_source).
 * Returns as exits_find().
 */
int resolve_exits(struct exits *exits, const struct image *image, const struct code_range *body);

#endif
