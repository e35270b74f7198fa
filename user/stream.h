/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Rings to records, in the order that assemble needs: per thread the calls in order, and all calls
 * of a step before the step.
 */
#ifndef FBT_STREAM_H
#define FBT_STREAM_H

#include "loader.h"
#include "record.h"
#include "traced.h"

struct stream;

struct stream_options {
	enum fbt_detail detail;
	uint64_t steps_max; /* later steps are dropped; 0: no limit */
	/* A process appeared (parent_tgid set) or called execve (0). */
	void (*on_process)(void *ctx, const struct fbt_target *target);
	void *ctx;
};

/* loader, traced and output are borrowed. NULL: -ENOMEM. */
struct stream *stream__new(struct loader *loader, struct traced_set *traced,
			   const struct record_output *output,
			   const struct stream_options *options);
void stream__free(struct stream *stream);

/* Throws away what is in the rings: what calibration left there. */
void stream__discard(struct stream *stream);

/* A step that began just before its thread came under trace is not lost: it is not the window's. */
void stream__forget_early_begins(struct stream *stream);

/* Sends what there is up to now, and gives the slots of ended threads back. */
void stream__drain(struct stream *stream);

/*
 * Ends the steps of a set of kinds that are open now: they are marked as truncated and sent with
 * the next drain. Only when nothing begins or ends such a step any more. How many.
 */
uint64_t stream__cut_steps(struct stream *stream, uint64_t kinds, uint64_t now_ns);

/* Whether a step of a set of kinds is open. */
bool stream__has_open_steps(const struct stream *stream, uint64_t kinds);

/* Whether any step was sent, or is open. */
bool stream__has_steps(const struct stream *stream);

/* Steps sent. */
uint64_t stream__steps(const struct stream *stream);

/* Threads that found no slot when they were made. */
uint64_t stream__lost_threads(const struct stream *stream);

/* Sends the lost counters if they changed. */
void stream__send_lost(struct stream *stream);

/*
 * At the end, when nothing is attached any more: sends the rest, then the steps and calls that are
 * still open, cut off at now_ns.
 */
void stream__finish(struct stream *stream, uint64_t now_ns);

#endif
