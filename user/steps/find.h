/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Finds the step functions of a process. */
#ifndef FBT_STEPS_FIND_H
#define FBT_STEPS_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "steps/image.h"
#include "steps/resolve.h"
#include "steps/spec.h"
#include "steps/target_options.h"

/* A code address that was on the stack of a busy thread (user/stream/stacks.h). */
struct code_place {
	uint64_t address; /* in the process's memory */
	uint32_t samples; /* stacks that it was on */
	uint32_t last_sample;
};

typedef VEC(struct code_place) code_place_vec; /* sorted by address */

/* The files of a process that were searched, by device and inode. */
struct target_seen;
struct target_seen *target_seen__new(void);
void target_seen__free(struct target_seen *seen);

/* The process has called execve: it has its time again, and texts may be in other files. */
void target_seen__restart(struct target_seen *seen);
/* All files of the process are searched again. */
void target_seen__forget(struct target_seen *seen);

/*
 * Finds the step functions of a process in all executable file mappings that were not searched
 * before. Appends them to functions; the caller frees them (step_function_free).
 *
 * Returns the number of added functions, or -errno, logged as one line. 0 is no error, because the
 * file may be loaded later.
 *
 *	-ESRCH		no such process, or a kernel thread
 *	-EPERM		a capability is missing, which the message names
 *	-E2BIG		more than TARGET_FUNCTIONS_MAX functions
 *	-ENOTSUP	no safe exit, or Go with --uretprobe
 *	-EINVAL		a 32-bit file, a wrong build-id, an address outside of functions …
 */
int target_find(uint32_t tgid, const struct target_options *options, struct target_seen *seen,
		function_vec *functions);

/*
 * Whether a process maps a file whose name is that of a known engine. Reads no file; false, without
 * a message, if the mappings cannot be read.
 */
bool target_may_have_engine(uint32_t tgid);

/*
 * Finds candidates for --list-steps, doctor and hints: at most max functions whose names look like
 * steps, those of the built-in table first. Their exits are resolved; functions without a safe exit
 * are left out. They are told apart by step_function_alone(). With busy, which is borrowed, only
 * functions that a busy thread is in are taken, and only the files that they are in are read.
 * Returns the number of added functions or -errno.
 */
int target_find_candidates(uint32_t tgid, const struct target_options *options,
			   const code_place_vec *busy, size_t max, function_vec *functions);

/* Of a process, for functions of Python. */
enum target_python {
	TARGET_PYTHON_NONE, /* the library for Python steps is not in it */
	TARGET_PYTHON_THERE,
	TARGET_PYTHON_TOLD, /* why they cannot be steps has been logged */
};

/* For a search without matches: logs why --step matched nothing and what to do. */
void target_explain_no_match(uint32_t tgid, const struct target_options *options,
			     enum target_python python);

/* Whether spec applies to this mapped file: it has no path, or the path of this file. */
bool target_spec_means(const struct step_spec *spec, uint32_t tgid, const char *mapped_path,
		       uint64_t inode);

/* Adds the arguments of --step-arg, and the one that is always recorded with this function. */
void target_add_args(struct step_function *function, const struct image *image,
		     const struct target_options *options);

/*
 * Whether the deadline has passed. Reads the clock only for every 256th index, because a file may
 * have millions of names.
 */
bool target_is_too_late(const struct target_options *options, size_t index);

#endif
