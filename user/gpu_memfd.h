/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The memory file that the shim of a process shares (fbt_gpu.h), from /proc/PID/fd. */
#ifndef FBT_GPU_MEMFD_H
#define FBT_GPU_MEMFD_H

#include <stdint.h>
#include "fbt_gpu.h"

struct broker_order;

struct gpu_memfd {
	struct fbt_gpu_ring header; /* as it was when it was checked */
	uint32_t version;	    /* -EPROTONOSUPPORT: the one it is of */
	uint32_t holder;	    /* -EBUSY: pid of the tracer that has it; 0: not known */
};

/*
 * Finds, checks and locks it. A descriptor whose first header_bytes + ring_bytes can be mapped for
 * reading and writing and will stay; the lock lasts until that descriptor is closed. Waits for
 * nothing that the process could keep back. Or -errno, without a message: see gpu_ring__open.
 */
int gpu_memfd_open(uint32_t tgid, struct gpu_memfd *found);

/* Where a broker opens them for us (struct broker_task): such memory of that name, of any process.
 */
int gpu_memfd_serve(const void *nothing, const struct broker_order *order);

#endif
