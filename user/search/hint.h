/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Names candidates when no step is seen. Finding them takes long in a large process, so a child
 * does it while the window continues, at a low priority and for at most HINT_CPU_MS of CPU time.
 * The child writes its results to a pipe.
 */
#ifndef FBT_TRACE_HINT_H
#define FBT_TRACE_HINT_H

#include <stdbool.h>
#include <stdint.h>
#include "kernel/rates.h"
#include "options.h"

#define HINT_CPU_MS 500

struct broker_order;
struct hint;

/*
 * A function that was called, as the child writes it; or, if the process is a launcher, a
 * descendant of the process that has a step function.
 */
struct candidate {
	double calls_per_s;
	double mean_ms;	   /* 0: not known */
	uint32_t tgid;	   /* of the descendant; 0: a function */
	bool is_child;	   /* the descendant is a child */
	char launcher[32]; /* name of the process itself */
	char name[2048];   /* of the function or of the descendant */
};

/*
 * What the child does: writes a process's candidates, each with one write(2). 0 or -errno, -EAGAIN
 * if the process is short of CPUs, so that nothing was searched.
 */
typedef int (*hint_look_fn)(const struct options *options, uint32_t tgid, int output);

/*
 * The tool's hint_look_fn: finds a descendant that has a step function if the process has none and
 * descendants are not traced (-f); otherwise the busiest functions.
 */
int hint_look(const struct options *options, uint32_t tgid, int output);

/*
 * Writes the first few of count rates as candidates, likeliest first. Skips functions that cannot
 * be a step by their rate (rate_is_plausible). 0 or -EIO.
 */
int hint_write(const struct rate *rates, size_t count, int output);

/* hint_look in a child of the broker (struct broker_task). ctx: the options. */
_Noreturn void hint_run(const void *options, const struct broker_order *order, int output);

/*
 * Starts a child that calls look; one that the broker starts calls hint_look. options are borrowed.
 * NULL: the child cannot be started, which is logged, or nobody would read the hint (-q).
 */
struct hint *hint__begin(const struct options *options, uint32_t tgid, hint_look_fn look);

/* Polls the child; never waits. true: the user has been told, so free the hint. */
bool hint__check(struct hint *hint);

/* The hint of a window. */
struct hint_wait {
	uint64_t due_ns; /* when to begin it if there is no step by then; 0: past */
	struct hint *hint;
	uint64_t cpu_ns; /* that the child used */
};

/*
 * Polls the hint and frees it once it has told the user. true: a hint is due, which happens once.
 */
bool hint_wait_turn(struct hint_wait *wait, uint64_t now_ns);

/* Ends the hint of a window. Returns the CPU time that its child used. */
uint64_t hint_wait_end(struct hint_wait *wait);

/* Kills the child if it is running. Does not wait until all its probes are removed. */
void hint__free(struct hint *hint);

#endif
