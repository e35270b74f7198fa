/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The functions of a process that may be its step function, and how often each is called. */
#ifndef FBT_TRACE_CANDIDATES_H
#define FBT_TRACE_CANDIDATES_H

#include "kernel/rates.h"
#include "options.h"
#include "proc/thread_use.h"

#define CANDIDATES_MAX 16

/* What is added to the nice value for a search that nobody asked for. */
#define CANDIDATES_NICE 10

struct candidates {
	function_vec functions;
	struct rate rates[CANDIDATES_MAX]; /* one for each function, likeliest first */
	thread_use_vec threads;		   /* what each used meanwhile, the busiest first */
};

/*
 * Finds candidates and measures their calls for two seconds. busy_only: only functions that a busy
 * thread is in, so that few files are read and few functions probed; there are none if all threads
 * are idle. The caller has added CANDIDATES_NICE to its nice value, which is taken off again before
 * probes are attached. 0 or -errno, logged but for -ENOENT: no function looks like a step; and two
 * of busy_only: -EAGAIN if the process is short of CPUs; -ENOTSUP if it runs Python, and what looks
 * like a step is of no engine that is known. Call candidates_clear in any case.
 */
int candidates_measure(struct candidates *candidates, const struct options *options, uint32_t tgid,
		       bool busy_only);
void candidates_clear(struct candidates *candidates);

double rate_per_second(const struct rate *rate);

/* The time that the calls of a function took. */
uint64_t rate_total_ns(const struct rate *rate);

/*
 * Whether a function with that rate may be a step: it was called, not so often that it is but a
 * part of one, and their time is not known or a twentieth of most_ns or more: the time of the
 * function that took most. A step function is what the engine does.
 */
bool rate_is_plausible(const struct rate *rate, uint64_t most_ns);

/*
 * Whether the thread that spends most time in the function does anything much: a thread with less
 * than a twentieth of the CPU time of the busiest one waits for something else than steps. True
 * where it is not known. threads: what each has used meanwhile, the busiest first.
 */
bool rate_is_on_busy_thread(const struct rate *rate, const thread_use_vec *threads);

#endif
