/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a search for step functions looks for, and how far it goes. */
#ifndef FBT_STEPS_TARGET_OPTIONS_H
#define FBT_STEPS_TARGET_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "steps/resolve.h"
#include "steps/spec.h"

/* More matches are an error: the pattern is too wide. */
#define TARGET_FUNCTIONS_MAX 16

/* Most time spent on one process, however many files and names it maps. */
#define TARGET_SEARCH_NS_MAX (30 * NS_PER_S)

/*
 * A function whose calls are shorter than this is no step. There is no upper limit but the second
 * of a measurement: a call is measured only if it begins and ends in it.
 */
#define STEP_NS_MIN 50000

/* What target_find() logs: errors and warnings, only errors, or nothing. */
enum target_tells { TARGET_TELLS_ALL = 0, TARGET_TELLS_ERRORS, TARGET_TELLS_NOTHING };

/* How a function that a text is in behaves. */
struct function_rate {
	uint64_t calls;
	uint64_t mean_ns; /* 0: not known */
	double calls_per_s;
	bool too_often; /* it is called so often that probing it would slow the process down */
	/*
	 * It runs on a busy thread, and its calls take a good part of the CPU time of the busiest
	 * one.
	 */
	bool is_busy;
};

/* Measures count functions of a process for about a second. 0 or -errno. */
typedef int (*function_measure_fn)(uint32_t tgid, struct step_function *const *functions,
				   size_t count, struct function_rate *rates);

/* What to look for. */
struct target_options {
	const struct step_spec *specs; /* --step; if there are none, the built-in table */
	size_t spec_count;
	const struct step_arg *args; /* --step-arg: added to every function found */
	size_t arg_count;
	const char *const *symbol_files; /* --symbols, matched by build-id */
	size_t symbol_file_count;
	bool uretprobe;
	/*
	 * Measures the functions that a text is in, to tell which one is the step; NULL: not
	 * possible.
	 */
	function_measure_fn measure;
	enum target_tells tells;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, set by target_find(); 0: none */
};

#endif
