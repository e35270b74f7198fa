/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * CUPTI has one subscriber at a time. The shim subscribes before it touches anything else of CUPTI:
 * registering our buffer callbacks would silently replace those of another profiler. A profiler
 * that does not subscribe is noticed by takeover.h.
 */
#ifndef FERRUM_SUBSCRIBER_H
#define FERRUM_SUBSCRIBER_H

#include "state.h"

/*
 * Finds and loads libcupti, unless that was done before, and checks its version. FBT_GPU_ARMED: it
 * can be used. Otherwise the status to report, with detail (CUPTI_DETAIL_BYTES).
 */
enum fbt_gpu_status subscriber__find_cupti(struct shim *shim, char *detail);

/* Subscribes, unless we are subscribed. FBT_GPU_ARMED, or the status to report. */
enum fbt_gpu_status subscriber__take(struct shim *shim, char *detail);

/* Unsubscribes, unless FERRUM_CUPTI_EARLY keeps the subscription. */
void subscriber__leave(struct shim *shim);

/* The status for a failed CUPTI call; detail gets the name of the call and its result. */
enum fbt_gpu_status subscriber__judge(const struct shim *shim, uint32_t result, const char *call,
				      char *detail);

#endif
