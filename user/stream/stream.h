/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Turns the contents of the BPF rings into records, in the order that model/assemble needs: the
 * calls of a thread in order, and all calls of a step before the step.
 */
#ifndef FBT_STREAM_STREAM_H
#define FBT_STREAM_STREAM_H

#include "kernel/faults.h"
#include "kernel/loader.h"
#include "model/event.h"
#include "elf/symbol_files.h"
#include "kernel/traced.h"
#include "stacks/script.h"

struct stream;

struct stream_options {
	enum fbt_detail detail;
	uint64_t steps_max;	     /* later steps are dropped; 0: no limit */
	struct symbol_files symbols; /* of code on stacks */
	/* The kernel is asked who is connected to whom: needs a socket, so before the tool is
	 * confined. */
	bool asks_sockets;
	bool is_tickless; /* there are CPUs without a timer tick: see cpus_find_tickless() */
	uint64_t hang_ns; /* a step that is open for longer is a hang; 0: none is */
	/* A process appeared (parent_tgid set) or called execve (0). */
	void (*on_process)(void *ctx, const struct fbt_target *target);
	void (*on_site)(void *ctx, const struct fbt_ring_site *site); /* a call site is reported */
	void (*on_step)(void *ctx, const struct fbt_step *step);      /* a step has ended */
	/* FBT_STEP_… that the kernel side does not know of; NULL: none. */
	uint16_t (*more_flags)(void *ctx, const struct fbt_step *step);
	struct script_reader scripts; /* its functions may be NULL */
	void *ctx;
};

/* loader, traced and output are borrowed. NULL: -ENOMEM. */
struct stream *stream__new(struct loader *loader, struct traced_set *traced,
			   const struct record_output *output,
			   const struct stream_options *options);
void stream__free(struct stream *stream);

/* From now on page faults are timed where they matter. */
void stream__time_faults(struct stream *stream, const struct fault_options *options);

/* Drops the contents of the rings: the records of the calibration. */
void stream__discard(struct stream *stream);

/* Resets FBT_LOST_BEGINS: steps that began before tracing of their thread are not lost. */
void stream__forget_early_begins(struct stream *stream);

/*
 * Sends all records up to now and gives back the slots of ended threads. Sends an FBT_EVENT_HANG of
 * each step that has been open for longer than hang_ns, once.
 */
void stream__drain(struct stream *stream);

/*
 * Truncates the open steps of these kinds (one bit per kind); the next drain sends them. The probes
 * of these kinds must be off. Returns the number of steps.
 */
uint64_t stream__cut_steps(struct stream *stream, uint64_t kinds, uint64_t now_ns);

/* Whether a step of these kinds (one bit per kind) is open. */
bool stream__has_open_steps(const struct stream *stream, uint64_t kinds);

/* Whether a step of this kind is open whose call site is not probed. */
bool stream__awaits_exit(const struct stream *stream, uint32_t kind);

/* Whether any step was sent, or is open; of a future, whether its first poll was. */
bool stream__has_steps(const struct stream *stream);

/* Polls of futures that began before the window: they belong to no step. */
uint64_t stream__late_polls(const struct stream *stream);

/* Number of steps sent; of a future, when its last poll is. */
uint64_t stream__steps(const struct stream *stream);

/* Number of new threads that found no free slot. */
uint64_t stream__lost_threads(const struct stream *stream);

/* Sends the lost counters if they changed. */
void stream__send_lost(struct stream *stream);

/* Sends how many stacks of slow calls and looks at open ones there were so far, if there were any.
 */
void stream__send_counts(struct stream *stream);

/* Sends how many calls the kernel left out since stream__discard(), if it did (struct fbt_unseen).
 */
void stream__send_unseen(struct stream *stream);

/*
 * To be called at the end, after everything is detached: sends the rest, then the steps and calls
 * that are still open, cut off at now_ns.
 */
void stream__finish(struct stream *stream, uint64_t now_ns);

#endif
