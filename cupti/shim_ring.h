/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The writer of the shared ring of fbt_gpu.h. Frames are put with the writer lock held, and become
 * visible with shim_ring__publish. The tail, which the tool writes, is read once per frame and
 * checked; nothing else is ever read back from the shared memory.
 */
#ifndef FERRUM_SHIM_RING_H
#define FERRUM_SHIM_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"
#include "own_memfd.h"

/* Room that record frames leave for status frames. */
#define SHIM_RING_RESERVE 16384

/* Bytes of the ring that are allocated from the start, for status frames. */
#define SHIM_RING_FIRST 16384

struct shim_ring {
	struct fbt_gpu_ring *shared;
	uint8_t *bytes;
	uint64_t head;	   /* includes what is not yet published */
	uint64_t reserved; /* bytes that are allocated: SHIM_RING_FIRST, or all */
	struct own_memfd file;
};

/*
 * Creates, seals and maps the memfd, with a complete header. 0; or -errno, and nothing is left.
 */
int shim_ring__create(struct shim_ring *ring);

/*
 * Allocates the memory of the whole ring before it is written. 0; or -errno: there is not enough
 * memory, so that writing would kill the process; all but the first few frames are dropped then.
 */
int shim_ring__reserve(struct shim_ring *ring);

/* Removes the ring after a later failure, so that nobody finds it. */
void shim_ring__destroy(struct shim_ring *ring);

/* In a forked child, which lacks the mapping: closes the descriptor if it is still the memfd. */
void shim_ring__close_in_child(struct shim_ring *ring);

enum shim_frame_kind {
	SHIM_FRAME_RECORD,  /* leaves SHIM_RING_RESERVE */
	SHIM_FRAME_CONTROL, /* may use all room */
};

/*
 * Appends a frame of frame->size bytes, a multiple of 8 up to FBT_GPU_FRAME_MAX. false: no room.
 */
bool shim_ring__put(struct shim_ring *ring, const struct fbt_header *frame,
		    enum shim_frame_kind kind);

/* Makes the frames visible to the tool. */
void shim_ring__publish(struct shim_ring *ring);

/*
 * Puts a record followed by count strings, which are cut so that the frame stays within
 * FBT_GPU_FRAME_MAX. Fills in type and size of the header. false: no room.
 */
bool shim_ring__put_strings(struct shim_ring *ring, const void *record, size_t size,
			    enum fbt_event_type type, enum shim_frame_kind kind,
			    const char *const *strings, size_t count);

#endif
