/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The shared memory of one process's shim (fbt_gpu.h), from the tool's side. The process may write
 * into it what it likes, at any time: what is read is copied first and checked then, and what it
 * says of places is never trusted.
 */
#ifndef FBT_GPU_RING_H
#define FBT_GPU_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"

struct gpu_ring;

/*
 * Finds and maps the ring of a process. 0; or -errno, without a message: -ENOENT it has none,
 * -ESRCH it is gone, -EBADMSG it is none that a shim makes (not sealed, too small, wrong magic,
 * huge pages …), -EPROTONOSUPPORT of another version (*version says which), -EBUSY another tracer
 * has it (*holder is its pid, or 0), -EPERM/-EACCES, -ENOMEM, -EMFILE. A ring that is still being
 * made is none, and so is one that the process only has a descriptor of, which is its parent's, or
 * that we have open: a child has its parent's memory until it calls execve.
 */
int gpu_ring__open(struct gpu_ring **ring, uint32_t tgid, uint32_t *version, uint32_t *holder);

/* Disarms, unless that was done, and lets go of the ring: another tracer may have it. */
void gpu_ring__free(struct gpu_ring *ring);

/* Asks the shim to collect; what is in the ring from before is skipped. */
void gpu_ring__arm(struct gpu_ring *ring);

/* Asks it to stop; records that it still has come until gpu_ring__is_dormant. */
void gpu_ring__disarm(struct gpu_ring *ring);

/* The shim has dealt with the latest wish, and is back at rest (or says that it is dead). */
bool gpu_ring__is_dormant(const struct gpu_ring *ring);

/* The shim has dealt with the latest wish, one way or the other. */
bool gpu_ring__has_answered(const struct gpu_ring *ring);

/* It says that it will not work again in this process. */
bool gpu_ring__is_dead(const struct gpu_ring *ring);

/* Tells the shim that the tracer is there; at least every FBT_GPU_BEAT_NS. */
void gpu_ring__beat(struct gpu_ring *ring);

/* The shim's own counter of life, see fbt_gpu_ring.pulse. */
uint32_t gpu_ring__pulse(const struct gpu_ring *ring);

/*
 * Hands on what has been written since: records whose header and fields have been checked
 * (decode.h), as the shim wrote them, in memory of ours. on_record may not keep them. At most
 * FBT_GPU_RING_BYTES a call. 0, or -EBADMSG: the ring is not sound, and no more is read from it.
 */
int gpu_ring__read(struct gpu_ring *ring, void (*on_record)(void *ctx, struct fbt_header *record),
		   void *ctx);

/* Records that were not sound, and were skipped. */
uint64_t gpu_ring__skipped(const struct gpu_ring *ring);

#endif
