/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names that cuptiGetCallbackName returns: for work, waits, and other calls. */
#ifndef FBT_TESTS_FAKE_CUPTI_NAMES_H
#define FBT_TESTS_FAKE_CUPTI_NAMES_H

#include "fake_cupti_state.h"

struct callback_name {
	uint32_t domain;
	uint32_t cbid;
	const char *name;
};

static const struct callback_name callback_names[] = {
	{FAKE_RUNTIME, 10, "cudaGetLastError_v3020"},
	{FAKE_RUNTIME, 16, "cudaSetDevice_v3020"},
	{FAKE_RUNTIME, 17, "cudaGetDevice_v3020"},
	{FAKE_RUNTIME, 20, "cudaMalloc_v3020"},
	{FAKE_RUNTIME, 22, "cudaFree_v3020"},
	{FAKE_RUNTIME, 31, "cudaMemcpy_v3020"},
	{FAKE_RUNTIME, 32, "cudaMemcpy2D_v3020"},
	{FAKE_RUNTIME, 41, "cudaMemcpyAsync_v3020"},
	{FAKE_RUNTIME, 49, "cudaMemset_v3020"},
	{FAKE_RUNTIME, 51, "cudaMemsetAsync_v3020"},
	{FAKE_RUNTIME, 129, "cudaStreamCreate_v3020"},
	{FAKE_RUNTIME, 131, "cudaStreamSynchronize_v3020"},
	{FAKE_RUNTIME, 132, "cudaStreamQuery_v3020"},
	{FAKE_RUNTIME, 135, "cudaEventRecord_v3020"},
	{FAKE_RUNTIME, 136, "cudaEventDestroy_v3020"},
	{FAKE_RUNTIME, 137, "cudaEventSynchronize_v3020"},
	{FAKE_RUNTIME, 147, "cudaStreamWaitEvent_v3020"},
	{FAKE_RUNTIME, 161, "cudaMemcpyPeerAsync_v4000"},
	{FAKE_RUNTIME, 165, "cudaDeviceSynchronize_v3020"},
	{FAKE_RUNTIME, 211, "cudaLaunchKernel_v7000"},
	{FAKE_RUNTIME, 214, "cudaLaunchKernel_ptsz_v7000"},
	{FAKE_RUNTIME, 225, "cudaMemcpyAsync_ptsz_v7000"},
	{FAKE_RUNTIME, 235, "cudaMemsetAsync_ptsz_v7000"},
	{FAKE_RUNTIME, 269, "cudaLaunchCooperativeKernel_v9000"},
	{FAKE_RUNTIME, 311, "cudaGraphLaunch_v10000"},
	{FAKE_RUNTIME, 312, "cudaGraphLaunch_ptsz_v10000"},
	{FAKE_RUNTIME, 430, "cudaLaunchKernelExC_v11060"},
	{FAKE_RUNTIME, 431, "cudaLaunchKernelExC_ptsz_v11060"},
	{FAKE_RUNTIME, 505, "__cudaLaunchKernel_v13000"},
	{FAKE_DRIVER, 1, "cuInit"},
	{FAKE_DRIVER, 2, "cuDriverGetVersion"},
	{FAKE_DRIVER, 17, "cuCtxSynchronize"},
	{FAKE_DRIVER, 121, "cuEventSynchronize"},
	{FAKE_DRIVER, 124, "cuStreamCreate"},
	{FAKE_DRIVER, 126, "cuStreamSynchronize"},
	{FAKE_DRIVER, 216, "cuMemsetD8Async"},
	{FAKE_DRIVER, 276, "cuMemcpyHtoD_v2"},
	{FAKE_DRIVER, 277, "cuMemcpyHtoDAsync_v2"},
	{FAKE_DRIVER, 279, "cuMemcpyDtoHAsync_v2"},
	{FAKE_DRIVER, 281, "cuMemcpyDtoDAsync_v2"},
	{FAKE_DRIVER, 295, "cuStreamWaitEvent"},
	{FAKE_DRIVER, 304, "cuCtxGetCurrent"},
	{FAKE_DRIVER, 306, "cuMemcpyAsync"},
	{FAKE_DRIVER, 307, "cuLaunchKernel"},
	{FAKE_DRIVER, 319, "cuMemcpyPeerAsync"},
	{FAKE_DRIVER, 392, "cuDevicePrimaryCtxGetState"},
	{FAKE_DRIVER, 442, "cuLaunchKernel_ptsz"},
	{FAKE_DRIVER, 514, "cuGraphLaunch"},
	{FAKE_DRIVER, 515, "cuGraphLaunch_ptsz"},
	{FAKE_DRIVER, 652, "cuLaunchKernelEx"},
	{FAKE_DRIVER, 653, "cuLaunchKernelEx_ptsz"},
	{FAKE_DRIVER, 686, "cuKernelGetAttribute"},
};

static const char *find_callback_name(uint32_t domain, uint32_t cbid)
{
	for (size_t i = 0; i < sizeof(callback_names) / sizeof(callback_names[0]); i++)
		if (callback_names[i].domain == domain && callback_names[i].cbid == cbid)
			return callback_names[i].name;
	return NULL;
}

#endif
