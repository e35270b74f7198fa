/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A process to where its steps begin and end. The only file that knows how the parts below fit. */
#ifndef FBT_TARGET_H
#define FBT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "step_function.h"
#include "target_options.h"

/*
 * Finds the step functions of a process: looks at every executable file mapping of it that was not
 * looked at before (seen remembers device and inode; NULL-safe on the first call via
 * target_seen__new). New functions are appended to functions, owned by the caller
 * (target_function_free).
 *
 * Returns the number added (0: nothing matched yet, which is no error here: the file may be loaded
 * later), or -errno logged as one clear line: -ESRCH no such process or a kernel thread, -EPERM
 * (names the missing capability), -E2BIG more than TARGET_FUNCTIONS_MAX, -ENOTSUP no safe exit or
 * Go with
 * --uretprobe, -EINVAL 32-bit, wrong build-id, address outside of any function …
 */
struct target_seen;
struct target_seen *target_seen__new(void);
void target_seen__free(struct target_seen *seen);
int target_find(uint32_t tgid, const struct target_options *options, struct target_seen *seen,
		function_vec *functions);

/*
 * Candidates for --list-steps and for the hint: functions whose names look like a step (built-in
 * table first), at most max of them, exits resolved, those without a safe exit left out. Number
 * added or -errno.
 */
int target_find_candidates(uint32_t tgid, const struct target_options *options, size_t max,
			   function_vec *functions);

/* One line that says where --step could not be found and what to do; for the 0 matches case. */
void target_explain_no_match(uint32_t tgid, const struct target_options *options);

#endif
