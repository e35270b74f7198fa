/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Reads the per-CPU call rings as one stream in the order of return. */
#ifndef FBT_CALL_RING_H
#define FBT_CALL_RING_H

#include "shared.h"

struct call_ring;

typedef void (*call_fn)(void *ctx, const struct fbt_call *call);

/* shared is borrowed. NULL: -ENOMEM. */
struct call_ring *call_ring__new(struct shared *shared);
void call_ring__free(struct call_ring *ring);

/*
 * Hands on the calls that returned up to cutoff_ns (the present, or UINT64_MAX for the last time)
 * and makes room. The calls of one thread come in order even if it changed its CPU: what returned
 * before cutoff_ns is in its ring by the time this is called. Returns the number of calls.
 */
uint64_t call_ring__drain(struct call_ring *ring, uint64_t cutoff_ns, call_fn on_call, void *ctx);

/* Calls that found no room, all CPUs. */
uint64_t call_ring__lost(const struct call_ring *ring);
void call_ring__reset_lost(struct call_ring *ring);

#endif
