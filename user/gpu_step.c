/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_step.h"

void step_gpu_free(struct step_gpu *gpu)
{
	if (!gpu)
		return;
	vec_free(&gpu->devices);
	vec_free(&gpu->busy);
	vec_free(&gpu->sync_busy);
	vec_free(&gpu->works);
	vec_free(&gpu->apis);
	vec_free(&gpu->syncs);
	vec_free(&gpu->overheads);
	free(gpu);
}

bool gpu_api_waits(const struct fbt_gpu_api *api)
{
	return api->api_class == FBT_GPU_API_SYNC || api->header.flags & FBT_GPU_API_BLOCKING;
}

const char *gpu_seal_name(enum gpu_seal seal)
{
	static const char *const names[GPU_SEAL_COUNT] = {
		"watermark", "timeout", "window_end", "room", "ended",
	};

	return seal < GPU_SEAL_COUNT ? names[seal] : "unknown";
}

const char *gpu_bound_name(enum gpu_bound bound)
{
	static const char *const names[GPU_BOUND_COUNT] = {
		"unknown", "gpu", "copy", "wait", "launch", "host", "none",
	};

	return bound < GPU_BOUND_COUNT ? names[bound] : "unknown";
}
