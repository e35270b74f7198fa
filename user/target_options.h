/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the user asked to be found. */
#ifndef FBT_TARGET_OPTIONS_H
#define FBT_TARGET_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "step_spec.h"

/* More matches than this is an error: the pattern is too wide. */
#define TARGET_FUNCTIONS_MAX 16

struct target_options {
	const struct step_spec *specs; /* none: the built-in table */
	size_t spec_count;
	const struct step_arg *args; /* --step-arg: go to every function found */
	size_t arg_count;
	const char *const *symbol_files; /* --symbols, by build-id */
	size_t symbol_file_count;
	bool uretprobe;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, set by target_find; 0: none */
};

struct options;

/* What of the command line says what to look for; borrows from options. */
struct target_options target_options_of(const struct options *options);

#endif
