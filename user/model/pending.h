/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Calls, and who ended waits, until the step that they belong to is known. */
#ifndef FBT_MODEL_PENDING_H
#define FBT_MODEL_PENDING_H

#include "model/step.h"

/* Limits: 16 MiB of calls in total, 8 MiB of calls per thread. */
#define PENDING_CALLS_MAX	 262144
#define PENDING_THREAD_CALLS_MAX 131072
#define PENDING_THREADS_MAX	 4096
#define PENDING_WAKES_MAX	 65536 /* 6 MiB */

/*
 * Calls that wait for the step they belong to. The record of a step arrives when the step ends,
 * after its calls. Until then it is not known whether a call was inside or outside of a step.
 *
 * A call leaves when a step of its thread takes it; an interval takes the calls of its process.
 * Otherwise the call leaves as an outside call:
 *
 *	when a later step shows that no step can take it any more;
 *	when its PID or thread ID is reused;
 *	when there are too many calls or threads. Calls of exited processes leave first, then those
 *	of threads that never had a step, then the older half of all calls;
 *	at the flush.
 *
 * Outside calls of one thread keep their order; those of several threads come in no order.
 */
struct pending;

/* on_outside receives each outside call and returns 0 or -errno. NULL: -ENOMEM. */
struct pending *pending__new(int (*on_outside)(void *ctx, const struct fbt_call *call), void *ctx);
void pending__free(struct pending *pending);

/*
 * These functions return 0, -ENOMEM or the first error of on_outside. They continue after an error.
 */
int pending__push(struct pending *pending, const struct fbt_call *call);

/*
 * Keeps the record of who ended a wait until the step of that wait takes it. The calls of the
 * thread may come later. 0 or -ENOMEM; a record that finds no room is dropped.
 */
int pending__push_wake(struct pending *pending, const struct fbt_wake *wake);

/*
 * Moves the calls of step->record to step->calls, sorted by start time, and its wakes to
 * step->wakes, and passes on the calls before the step. Sets step->calls_truncated if some of the
 * calls are missing.
 */
int pending__take(struct pending *pending, struct step *step);

/* The process has exited: its calls leave first when room is needed. */
void pending__mark_exited(struct pending *pending, uint32_t tgid);

/* Passes on all calls of a process; pending__flush() passes on all calls. */
int pending__release(struct pending *pending, uint32_t tgid);
int pending__flush(struct pending *pending);

/* What is held at present. */
size_t pending__call_count(const struct pending *pending);
size_t pending__thread_count(const struct pending *pending);

#endif
