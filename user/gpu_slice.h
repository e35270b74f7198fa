/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* GPU records as slices of a trace: their names, in Kineto's words, and their ends. Pure. */
#ifndef FBT_GPU_SLICE_H
#define FBT_GPU_SLICE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"
#include "gpu_table.h"
#include "window.h"

#define GPU_SLICE_NAME_SIZE 64

/*
 * Of a kernel its demangled name, else "Memcpy HtoD (Pinned -> Device)", "Memset (Device)"; in text
 * or in the process, which may be NULL.
 */
const char *gpu_slice_work_name(const struct gpu_process *process, const struct fbt_gpu_work *work,
				char text[GPU_SLICE_NAME_SIZE]);

/* "cudaLaunchKernel"; process may be NULL. */
const char *gpu_slice_api_name(const struct gpu_process *process, const struct fbt_gpu_api *api);

/* "Stream Sync", "Command Buffer Full". */
const char *gpu_slice_sync_name(const struct fbt_gpu_sync *sync);
const char *gpu_slice_overhead_name(const struct fbt_gpu_overhead *overhead);

/*
 * Where a call's slice ends. A call that began in a step of its own thread ends in it: one that
 * sticks out does so by the error of CUPTI's clock, and is cut. step may be NULL.
 */
uint64_t gpu_slice_api_end_ns(const struct fbt_gpu_api *api, const struct fbt_step *step);

#endif
