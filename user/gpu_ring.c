/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decode.h"
#include "gpu_memfd.h"

/* Bytes that are copied at once. */
#define CHUNK_BYTES (64u << 10)

_Static_assert(CHUNK_BYTES > FBT_GPU_FRAME_MAX, "a whole frame must fit");

struct gpu_ring {
	int fd; /* holds the lock: while it is open, no other tracer reads */
	struct fbt_gpu_ring *shared;
	const unsigned char *bytes; /* of the ring */
	uint32_t header_bytes;
	uint64_t ring_bytes;
	uint64_t tail;
	uint64_t head; /* as it was last seen */
	uint32_t armed;
	uint32_t beat;
	bool asked;  /* armed is ours, and odd */
	bool broken; /* nothing in it can be found any more */
	uint64_t skipped;
	_Alignas(8) unsigned char chunk[CHUNK_BYTES];
};

static int map_ring(struct gpu_ring *ring, const struct fbt_gpu_ring *header)
{
	void *shared;

	ring->header_bytes = header->header_bytes;
	ring->ring_bytes = header->ring_bytes;
	shared = mmap(NULL, ring->header_bytes + ring->ring_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED, ring->fd, 0);
	if (shared == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : -EBADMSG;
	ring->shared = shared;
	ring->bytes = (unsigned char *)shared + ring->header_bytes;
	ring->armed = __atomic_load_n(&ring->shared->armed, __ATOMIC_RELAXED);
	ring->beat = __atomic_load_n(&ring->shared->beat, __ATOMIC_RELAXED);
	ring->tail = __atomic_load_n(&ring->shared->tail, __ATOMIC_RELAXED);
	ring->head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);
	/* The tracer before us, or the process: it need not make sense. */
	if (ring->tail % 8 || ring->head - ring->tail > ring->ring_bytes)
		ring->tail = ring->head;
	return 0;
}

int gpu_ring__open(struct gpu_ring **result, uint32_t tgid, uint32_t *version, uint32_t *holder)
{
	struct gpu_memfd found;
	struct gpu_ring *ring;
	int fd = gpu_memfd_open(tgid, &found), err;

	*result = NULL;
	*version = found.version;
	*holder = found.holder;
	if (fd < 0)
		return fd;
	ring = calloc(1, sizeof(*ring));
	if (!ring) {
		close(fd);
		return -ENOMEM;
	}
	ring->fd = fd;
	err = map_ring(ring, &found.header);
	if (err) {
		gpu_ring__free(ring);
		return err;
	}
	*result = ring;
	return 0;
}

void gpu_ring__free(struct gpu_ring *ring)
{
	if (!ring)
		return;
	if (ring->shared) {
		gpu_ring__disarm(ring);
		munmap(ring->shared, ring->header_bytes + ring->ring_bytes);
	}
	close(ring->fd);
	free(ring);
}

static void set_armed(struct gpu_ring *ring)
{
	__atomic_store_n(&ring->shared->armed, ring->armed, __ATOMIC_RELEASE);
	/* All of its threads: who waits is the shim's business. */
	syscall(SYS_futex, &ring->shared->armed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gpu_ring__arm(struct gpu_ring *ring)
{
	/* The one before us may have left it odd when it was killed. */
	ring->armed += ring->armed % 2 ? 2 : 1;
	ring->asked = true;
	ring->head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);
	ring->tail = ring->head;
	__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
	gpu_ring__beat(ring);
	set_armed(ring);
}

void gpu_ring__disarm(struct gpu_ring *ring)
{
	if (!ring->asked)
		return;
	ring->asked = false;
	ring->armed++;
	set_armed(ring);
}

bool gpu_ring__has_answered(const struct gpu_ring *ring)
{
	return __atomic_load_n(&ring->shared->served, __ATOMIC_ACQUIRE) == ring->armed;
}

bool gpu_ring__is_dead(const struct gpu_ring *ring)
{
	return __atomic_load_n(&ring->shared->phase, __ATOMIC_ACQUIRE) == FBT_GPU_DEAD;
}

bool gpu_ring__is_dormant(const struct gpu_ring *ring)
{
	return gpu_ring__is_dead(ring) ||
	       (gpu_ring__has_answered(ring) &&
		__atomic_load_n(&ring->shared->phase, __ATOMIC_ACQUIRE) == FBT_GPU_DORMANT);
}

void gpu_ring__beat(struct gpu_ring *ring)
{
	__atomic_store_n(&ring->shared->beat, ++ring->beat, __ATOMIC_RELAXED);
}

uint32_t gpu_ring__pulse(const struct gpu_ring *ring)
{
	return __atomic_load_n(&ring->shared->pulse, __ATOMIC_RELAXED);
}

/* From here on the process cannot change it. */
static void copy_chunk(struct gpu_ring *ring, size_t size)
{
	uint64_t at = ring->tail % ring->ring_bytes;
	size_t first = size < ring->ring_bytes - at ? size : ring->ring_bytes - at;

	memcpy(ring->chunk, ring->bytes + at, first);
	memcpy(ring->chunk + first, ring->bytes, size - first);
	__asm__ volatile("" ::: "memory");
}

static void take_frame(struct gpu_ring *ring, struct fbt_header *frame,
		       void (*on_record)(void *ctx, struct fbt_header *record), void *ctx)
{
	const struct fbt_header *event;

	if (frame->type < FBT_EVENT_GPU_STATE || frame->type > FBT_EVENT_GPU_CLOCK ||
	    decode_event(frame, frame->size, &event) != (long)frame->size)
		ring->skipped++;
	else
		on_record(ctx, frame);
}

/* Bytes of whole frames in the chunk, or -EBADMSG. Where a size lies, nobody knows the next one. */
static long take_frames(struct gpu_ring *ring, size_t size, bool is_end,
			void (*on_record)(void *ctx, struct fbt_header *record), void *ctx)
{
	size_t at = 0;

	while (at < size) {
		struct fbt_header *frame = (struct fbt_header *)(ring->chunk + at);
		size_t bytes = frame->size;

		if (bytes < sizeof(*frame) || bytes % 8 || bytes > FBT_GPU_FRAME_MAX)
			return -EBADMSG;
		if (bytes > size - at)
			return is_end ? -EBADMSG : (long)at;
		take_frame(ring, frame, on_record, ctx);
		at += bytes;
	}
	return (long)at;
}

int gpu_ring__read(struct gpu_ring *ring, void (*on_record)(void *ctx, struct fbt_header *record),
		   void *ctx)
{
	uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);
	uint64_t left = FBT_GPU_RING_BYTES;

	if (head < ring->head || head % 8 || head - ring->tail > ring->ring_bytes)
		ring->broken = true;
	ring->head = head;
	while (!ring->broken && left && ring->tail != head) {
		uint64_t there = head - ring->tail;
		size_t size = there < CHUNK_BYTES ? there : CHUNK_BYTES;
		long taken;

		copy_chunk(ring, size);
		taken = take_frames(ring, size, size == there, on_record, ctx);
		if (taken < 0) {
			ring->broken = true;
			break;
		}
		ring->tail += (uint64_t)taken;
		__atomic_store_n(&ring->shared->tail, ring->tail, __ATOMIC_RELEASE);
		left -= (uint64_t)taken < left ? (uint64_t)taken : left;
	}
	return ring->broken ? -EBADMSG : 0;
}

uint64_t gpu_ring__skipped(const struct gpu_ring *ring)
{
	return ring->skipped;
}
