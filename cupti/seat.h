/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Getting as far as CUPTI's one subscriber seat, which is asked for before anything else of CUPTI
 * is touched: the buffer callbacks of another profiler would be lost by registering ours.
 */
#ifndef FERRUM_SEAT_H
#define FERRUM_SEAT_H

#include "shim.h"

/*
 * Finds and loads libcupti, unless that was done, and judges its version. FBT_GPU_ARMED: it will
 * do; else what to say, with detail of CUPTI_DETAIL_BYTES.
 */
enum fbt_gpu_status seat__find_cupti(struct shim *shim, char *detail);

/* Takes the seat, unless we have it. FBT_GPU_ARMED, or what to say. */
enum fbt_gpu_status seat__take(struct shim *shim, char *detail);

/* Gives it back, unless it is to be kept. */
void seat__leave(struct shim *shim);

/* What a failed call of CUPTI's means; detail says which it was. */
enum fbt_gpu_status seat__judge(const struct shim *shim, uint32_t result, const char *call,
				char *detail);

#endif
