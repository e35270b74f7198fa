/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The shared memory of one process's shim (fbt_gpu.h), as the tool uses it. The process may change
 * it at any time, so records are copied before they are checked, and its positions are not trusted.
 */
#ifndef FBT_SHIM_RING_H
#define FBT_SHIM_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"

struct broker_order;
struct gpu_ring;

/*
 * Finds and maps the ring of a process. 0; or -errno, without a message: -ESRCH the process is
 * gone; -EBADMSG no shim made it (not sealed, too small, wrong magic, huge pages …);
 * -EPROTONOSUPPORT the shim has version *version; -EBUSY another tracer (*holder is its pid, or 0)
 * has the ring; -EPERM, -EACCES, -ENOMEM, -EMFILE.
 *
 * -ENOENT: the process has no ring. A ring does not count while it is being created, if the process
 * has only inherited a descriptor of it, or if we have it open (a child shares its parent's memory
 * until it calls execve).
 */
int gpu_ring__open(struct gpu_ring **ring, uint32_t tgid, uint32_t *version, uint32_t *holder);

/* Disarms the shim if it is armed, and unlocks the ring for other tracers. */
void gpu_ring__free(struct gpu_ring *ring);

/* Asks the shim to collect. Skips records that are already in the ring. */
void gpu_ring__arm(struct gpu_ring *ring);

/* Asks the shim to stop. Records that it still holds arrive until gpu_ring__is_dormant. */
void gpu_ring__disarm(struct gpu_ring *ring);

/* Whether we have armed the shim and it has not begun to collect for that. */
bool gpu_ring__is_pending(const struct gpu_ring *ring);

/* Whether the shim has handled the latest request and is idle, or is dead. */
bool gpu_ring__is_dormant(const struct gpu_ring *ring);

/* Whether the shim says that it will not work again in this process. */
bool gpu_ring__is_dead(const struct gpu_ring *ring);

/* Tells the shim that the tracer is alive. Call at least every FBT_GPU_BEAT_NS. */
void gpu_ring__beat(struct gpu_ring *ring);

/* The shim's heartbeat, see fbt_gpu_ring.pulse. */
uint32_t gpu_ring__pulse(const struct gpu_ring *ring);

/*
 * Calls on_record for each new record, which is a copy that has been checked (decode_event), in the
 * shim's own terms, and valid during the call. Reads at most FBT_GPU_RING_BYTES per call. 0; or
 * -EBADMSG: the ring is corrupt, and is no longer read.
 */
int gpu_ring__read(struct gpu_ring *ring, void (*on_record)(void *ctx, struct fbt_header *record),
		   void *ctx);

/* Number of invalid records that were skipped since gpu_ring__arm. */
uint64_t gpu_ring__skipped(const struct gpu_ring *ring);

struct gpu_memfd {
	struct fbt_gpu_ring header; /* as it was when the file was checked */
	uint32_t version;	    /* of the shim, with -EPROTONOSUPPORT */
	uint32_t holder;	    /* with -EBUSY: pid of the tracer; 0: not known */
};

/*
 * Finds the shim's memfd in /proc/PID/fd, checks and locks it. Returns a descriptor, which holds
 * the lock; header_bytes + ring_bytes of it can safely be mapped for reading and writing. Or -errno
 * as gpu_ring__open, without a message. Never waits for the process.
 */
int gpu_memfd_open(uint32_t tgid, struct gpu_memfd *found);

/* In the broker: opens such a memfd of any process for us (struct broker_task). */
int gpu_memfd_serve(const void *nothing, const struct broker_order *order);

#endif
