/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Calls that wait for the step they belong to. A step's record arrives when it ends, after its
 * calls, so until then nobody can tell a call inside a step from one outside.
 *
 * A call leaves when a step of its thread takes it (of its process, if the step is an interval), or
 * as an outside call: when a later step shows that none can take it any more, when its process
 * number is used again, when there are too many (first those of processes that have exited, then
 * those of threads that never had a step, then the older half of all), or at the flush. Outside
 * calls of one thread keep their order; between threads there is none.
 */
#ifndef FBT_PENDING_H
#define FBT_PENDING_H

#include "step.h"

/* Limits of one object: 16 MiB of calls, 8 MiB of one thread's. */
#define PENDING_CALLS_MAX	 262144
#define PENDING_THREAD_CALLS_MAX 131072
#define PENDING_THREADS_MAX	 4096

struct pending;

/* on_outside is given each outside call; it returns 0 or -errno. NULL: -ENOMEM. */
struct pending *pending__new(int (*on_outside)(void *ctx, const struct fbt_call *call), void *ctx);
void pending__free(struct pending *pending);

/* All that follow return 0, -ENOMEM, or the first error of on_outside; they go on after either. */
int pending__push(struct pending *pending, const struct fbt_call *call);

/*
 * Moves the calls of step->record to step->calls, by start time, and passes on those before it.
 * Sets step->calls_truncated if not all of them are there.
 */
int pending__take(struct pending *pending, struct step *step);

/* The process has exited: its calls are the first to go when room is needed. */
void pending__mark_exited(struct pending *pending, uint32_t tgid);
int pending__release(struct pending *pending, uint32_t tgid);
int pending__flush(struct pending *pending);

size_t pending__call_count(const struct pending *pending);
size_t pending__thread_count(const struct pending *pending);

#endif
