/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_slice.h"

#include <stdio.h>

static const char *copy_kind_name(uint32_t kind)
{
	static const char *const names[FBT_GPU_COPY_KIND_COUNT] = {
		"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
		"AtoD",	     "DtoA", "DtoD", "HtoH", "PtoP",
	};

	return kind < FBT_GPU_COPY_KIND_COUNT ? names[kind] : names[FBT_GPU_COPY_UNKNOWN];
}

static const char *memory_kind_name(uint32_t kind)
{
	static const char *const names[] = {
		"Unknown", "Pageable", "Pinned",	"Device",
		"Array",   "Managed",  "Device Static", "Managed Static",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "<unknown>";
}

const char *gpu_slice_work_name(const struct gpu_process *process, const struct fbt_gpu_work *work,
				char text[GPU_SLICE_NAME_SIZE])
{
	switch (work->kind) {
	case FBT_GPU_MEMCPY:
		snprintf(text, GPU_SLICE_NAME_SIZE, "Memcpy %s (%s -> %s)",
			 copy_kind_name(work->copy.kind),
			 memory_kind_name(work->copy.source_memory),
			 memory_kind_name(work->copy.target_memory));
		return text;
	case FBT_GPU_MEMSET:
		snprintf(text, GPU_SLICE_NAME_SIZE, "Memset (%s)",
			 memory_kind_name(work->copy.target_memory));
		return text;
	default:
		return process ? gpu_process_kernel_name(process, work->name) : "kernel";
	}
}

const char *gpu_slice_api_name(const struct gpu_process *process, const struct fbt_gpu_api *api)
{
	return process ? gpu_process_api_name(process, api->name) : "cuda call";
}

const char *gpu_slice_sync_name(const struct fbt_gpu_sync *sync)
{
	static const char *const names[FBT_GPU_SYNC_KIND_COUNT] = {
		"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync",
	};

	return names[sync->kind < FBT_GPU_SYNC_KIND_COUNT ? sync->kind : FBT_GPU_SYNC_UNKNOWN];
}

const char *gpu_slice_overhead_name(const struct fbt_gpu_overhead *overhead)
{
	static const char *const names[] = {
		"Unknown",
		"Buffer Flush",
		"Instrumentation",
		"Resource",
		"Runtime Triggered Module Loading",
		"Lazy Function Loading",
		"Command Buffer Full",
		"Activity Buffer Request",
		"UVM Activity Init",
	};
	uint32_t kind = overhead->kind >> 16;

	if (overhead->kind == 1)
		return "Driver Compiler";
	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

uint64_t gpu_slice_api_end_ns(const struct fbt_gpu_api *api, const struct fbt_step *step)
{
	bool is_inside = step && step->kind && step->tgid == api->tgid && step->tid == api->tid &&
			 step->start_ns <= api->start_ns && api->start_ns < step->end_ns;

	return is_inside && api->end_ns > step->end_ns ? step->end_ns : api->end_ns;
}
