/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The shared memory of fbt_gpu.h, from the shim's side. Frames are put under the shim's one writer
 * lock and become visible with shim_ring__publish. What the tool may write, its tail, is read once
 * a frame and believed only if it makes sense; nothing else of the memory is ever read back.
 */
#ifndef FERRUM_SHIM_RING_H
#define FERRUM_SHIM_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "fbt_gpu.h"

/* Room that frames of records leave to those that say how things stand. */
#define SHIM_RING_RESERVE 16384

/* Bytes of the ring that are set aside from the beginning, for what has to be told in any case. */
#define SHIM_RING_FIRST 16384

struct shim_ring {
	struct fbt_gpu_ring *shared;
	uint8_t *bytes;
	uint64_t head;	   /* with what is not yet published */
	uint64_t reserved; /* SHIM_RING_FIRST, or all */
	int fd;
	dev_t device; /* of the memfd, to know it again in a forked child */
	ino_t inode;
};

/*
 * Makes, seals and maps the memfd; its header is complete. 0 or -errno: nothing is left behind.
 * The descriptor is a high one: an engine that was started with its standard streams closed does
 * not get a ring as one of them.
 */
int shim_ring__create(struct shim_ring *ring);

/*
 * Has the memory of all of it set aside, before it is written to. 0, or -errno: there is not so
 * much, and to write would end the process; what is put is then lost but for the first few frames.
 */
int shim_ring__reserve(struct shim_ring *ring);

/* For what failed later on: nobody shall find this ring. */
void shim_ring__destroy(struct shim_ring *ring);

/* In a forked child, where the mapping is not: closes the descriptor, if it is still the memfd. */
void shim_ring__close_in_child(const struct shim_ring *ring);

enum shim_frame_kind {
	SHIM_FRAME_RECORD,  /* leaves SHIM_RING_RESERVE */
	SHIM_FRAME_CONTROL, /* may use all there is */
};

/*
 * Copies a frame of frame->size bytes, a multiple of 8 up to FBT_GPU_FRAME_MAX, behind the head.
 * false: it finds no room.
 */
bool shim_ring__put(struct shim_ring *ring, const struct fbt_header *frame,
		    enum shim_frame_kind kind);

/* Lets the tool see what was put. */
void shim_ring__publish(struct shim_ring *ring);

/*
 * Puts a record followed by count strings, cut so that the frame stays within FBT_GPU_FRAME_MAX.
 * Fills in type and size of header. false: it finds no room.
 */
bool shim_ring__put_strings(struct shim_ring *ring, const void *record, size_t size,
			    enum fbt_event_type type, enum shim_frame_kind kind,
			    const char *const *strings, size_t count);

#endif
