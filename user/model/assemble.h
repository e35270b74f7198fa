/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Assembles records into steps, each with its calls, and into the model of the window. */
#ifndef FBT_MODEL_ASSEMBLE_H
#define FBT_MODEL_ASSEMBLE_H

#include "model/step.h"
#include "model/window.h"

struct assembler;

/*
 * Receives the results. The functions return 0 or -errno, which is passed up. All but on_step may
 * be NULL.
 */
struct assembler_output {
	/* step is borrowed, but on_step may take the calls out of it. */
	int (*on_step)(void *ctx, struct window *window, struct step *step);
	/*
	 * A call outside of steps, with FBT_DETAIL_ALL only. The calls of one thread come in order;
	 * those of several threads come late and in no order.
	 */
	int (*on_call)(void *ctx, const struct window *window, const struct fbt_call *call);
	void (*on_manual)(void *ctx); /* the user asks for an escalation */
	/* A record of fbt_gpu.h. Its facts about the process are in window->gpus by now. */
	int (*on_gpu)(void *ctx, struct window *window, const struct fbt_header *event);
	/* Everything has been passed on, and window->end_ns is set. */
	int (*on_end)(void *ctx, struct window *window);
	void *ctx;
};

struct assembler *assembler__new(const struct assembler_output *output); /* NULL: -ENOMEM */
void assembler__free(struct assembler *assembler);

/*
 * Takes one record that decode_event() has checked. The calls of a thread must come in order, and
 * the calls of a step before the step. Records before FBT_EVENT_WINDOW, and further records of that
 * type, are skipped and counted. Returns 0 or -errno; after an error, as much of the record as
 * possible has been processed.
 */
int assembler__push(struct assembler *assembler, const struct fbt_header *event);

/* Counts a malformed record. */
void assembler__count_skipped(struct assembler *assembler);

/* To be called at the end of the stream: passes on the remaining calls, sets end_ns and cut_off. */
int assembler__flush(struct assembler *assembler);
const struct window *assembler__window(const struct assembler *assembler);

/* Limits of one object: 16 MiB of calls in total, 8 MiB of calls per thread. */
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
