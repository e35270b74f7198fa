/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds the step function of an engine that nobody knows, also of a stripped one. The stacks of its
 * busy threads are sampled for two seconds. The functions that a thread is in nearly always are
 * then probed from the outermost on, a few at a time and for two seconds, until one is called and
 * returns as a step does (search/step_choice.h).
 */
#ifndef FBT_TRACE_STEP_SEARCH_H
#define FBT_TRACE_STEP_SEARCH_H

#include "kernel/rates.h"
#include "options.h"

#define STEP_SEARCH_CPU_MS 500
#define STEP_SEARCH_MAX	   4

enum step_search_end {
	STEP_SEARCH_FOUND = 0,
	STEP_SEARCH_NONE,    /* no function is called as a step is */
	STEP_SEARCH_IDLE,    /* no thread is busy */
	STEP_SEARCH_STARVED, /* the threads are short of CPUs: nothing was searched, or found */
	STEP_SEARCH_COSTLY,  /* STEP_SEARCH_CPU_MS did not suffice */
	STEP_SEARCH_PYTHON,  /* its steps are Python functions: nothing was searched */
};

struct step_search {
	enum step_search_end end;
	/* The step, and then functions within it that are called as steps are, too. */
	function_vec functions;
	struct rate rates[STEP_SEARCH_MAX]; /* of these */
	double share; /* of its thread's CPU time that the step takes, at most 1 */
	uint32_t tid; /* of that thread */
};

/*
 * yields: searches nothing while the threads are short of CPUs. The caller may have added
 * CANDIDATES_NICE to its nice value (nice_first), which is taken off before probes are attached.
 * 0, or -errno if it could not be searched, without a message. Call step_search_clear in any case.
 * The functions are told apart by step_function_alone(), which is "PATH+0xADDR".
 */
int step_search(struct step_search *search, uint32_t tgid, const struct options *options,
		bool yields, bool nice_first);
void step_search_clear(struct step_search *search);

#endif
