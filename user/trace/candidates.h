/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The functions of a process that may be its step function, and how often each is called. */
#ifndef FBT_TRACE_CANDIDATES_H
#define FBT_TRACE_CANDIDATES_H

#include "kernel/rates.h"
#include "options.h"
#include "steps/find.h"

#define CANDIDATES_MAX 16

/* What is added to the nice value for a search that nobody asked for. */
#define CANDIDATES_NICE 10

struct candidates {
	function_vec functions;
	struct rate rates[CANDIDATES_MAX]; /* one for each function, likeliest first */
};

/*
 * Finds candidates and measures their calls for two seconds. busy_only: only functions that a busy
 * thread is in, so that few files are read and few functions probed; there are none if all threads
 * are idle. The caller has added CANDIDATES_NICE to its nice value, which is taken off again before
 * probes are attached. 0 or -errno, logged but for two of busy_only: -ENOENT if no function looks
 * like a step, -EAGAIN if the process is short of CPUs. Call candidates_clear in any case.
 */
int candidates_measure(struct candidates *candidates, const struct options *options, uint32_t tgid,
		       bool busy_only);
void candidates_clear(struct candidates *candidates);

double rate_per_second(const struct rate *rate);

/* The time that the calls of a function took. */
uint64_t rate_total_ns(const struct rate *rate);

/*
 * Whether a function with that rate may be a step. It was called, but not so often that it can only
 * be a part of a step. The time of its calls is not known, or it is at least a twentieth of
 * most_ns, the time of the function whose calls took most.
 */
bool rate_is_plausible(const struct rate *rate, uint64_t most_ns);

/*
 * A function_measure_fn (user/steps/find.h), for the functions that a text is in, before a window
 * is open. Probes them for a second.
 */
int candidates_measure_text(uint32_t tgid, struct step_function *const *functions, size_t count,
			    struct function_rate *result);

#endif
