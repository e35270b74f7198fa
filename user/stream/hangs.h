/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Steps that have been open for too long. Each is told of once: at once, or as soon as its process
 * may be looked at, which of several that hang together is one at a time.
 */
#ifndef FBT_STREAM_HANGS_H
#define FBT_STREAM_HANGS_H

#include "kernel/shared.h"
#include "model/event.h"

struct hangs;

/* For so long a hang waits for a look. */
#define HANGS_PATIENCE_NS 5000000000ull

struct hangs_options {
	uint64_t hang_ns; /* how long a step is open then; 0: none is told of */
	/* Whether no process may be looked at yet. */
	bool (*must_wait)(void *ctx, uint64_t now_ns);
	/* Makes the record of the call that a thread is in. */
	void (*make_call)(void *ctx, const struct fbt_slot *slot, uint64_t now_ns,
			  struct fbt_call *call);
	void (*tell)(void *ctx, const struct fbt_hang *hang);
	void *ctx;
};

/* shared is borrowed. NULL: -ENOMEM. */
struct hangs *hangs__new(const struct shared *shared, const struct hangs_options *options);
void hangs__free(struct hangs *hangs);

/* To be called every few ms. */
void hangs__turn(struct hangs *hangs, uint64_t now_ns);

/* The window ends: tells of those that still wait for a look. */
void hangs__finish(struct hangs *hangs, uint64_t now_ns);

#endif
