/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Starts and stops the collection of CUPTI's activity records when the tool asks for it. The
 * outcome is always reported in an FBT_EVENT_GPU_STATE record. All functions run on the shim's own
 * thread, except for collect__attach.
 */
#ifndef FERRUM_COLLECT_H
#define FERRUM_COLLECT_H

#include "state.h"

/*
 * FERRUM_CUPTI_EARLY: loads CUPTI and subscribes for the life of the process, for versions that
 * must be loaded before the engine captures CUDA graphs. A failure is reported by collect__begin,
 * which tries again.
 */
void collect__attach(struct shim *shim);

/* Starts collecting. asked_ns: when the tool asked. false: it failed, and CUPTI is as it was. */
bool collect__begin(struct shim *shim, uint64_t asked_ns);

/*
 * Flushes CUPTI once; called every TURN_MS of shim.c while collecting. false: another tool has the
 * records (takeover.h) or has set CUPTI's clock, or kernels have no times any more, which arming
 * again mends; call collect__end.
 */
bool collect__turn(struct shim *shim);

/*
 * Stops collecting: waits for outstanding records, at most one second, unless another tool has
 * them, and restores CUPTI's attributes.
 */
void collect__end(struct shim *shim);

#endif
