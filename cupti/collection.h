/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * From the tool's wish to records, and back. What comes of it is told in FBT_EVENT_GPU_STATE,
 * always. All on the shim's own thread, but for collection__attach.
 */
#ifndef FERRUM_COLLECTION_H
#define FERRUM_COLLECTION_H

#include "shim.h"

/*
 * Loads CUPTI and takes its seat, now and for good: for versions that must be there before the
 * engine captures CUDA graphs. What fails is tried again, and told, when records are wanted.
 */
void collection__attach(struct shim *shim);

/* Begins to collect; wish_ns is when that was asked for. false: not possible, CUPTI is untouched.
 */
bool collection__begin(struct shim *shim, uint64_t wish_ns);

/* One turn of the flusher, every SHIM_TURN_MS while collecting. */
void collection__turn(struct shim *shim);

/*
 * Ends it: records that are still to come are waited for, at most a second. What is CUPTI's stays
 * as it was found.
 */
void collection__end(struct shim *shim);

#endif
