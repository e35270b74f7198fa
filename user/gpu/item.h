/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One piece of a device's work, with what is known of it. */
#ifndef FBT_GPU_ITEM_H
#define FBT_GPU_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include "fbt_gpu.h"

struct gpu_item {
	const struct fbt_gpu_work *work; /* with times: end_ns > 0 */
	const struct fbt_gpu_api *api;	 /* the call that launched it; NULL: not known */
	bool mine;			 /* the step launched it */
	bool comm;			 /* a kernel of NCCL */
};

/* The call that launched it; NULL if the call or its times are not known (CUPTI left them 0). */
static inline const struct fbt_gpu_api *gpu_item_call(const struct gpu_item *item)
{
	const struct fbt_gpu_api *api = item->api;

	return api && api->start_ns && api->end_ns >= api->start_ns ? api : NULL;
}

/* Work that takes no time is counted, and nothing more. */
static inline bool gpu_item_takes_time(const struct gpu_item *item)
{
	return item->work->end_ns > item->work->start_ns;
}

#endif
