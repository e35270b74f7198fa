/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shim_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define RING_MAP_BYTES (FBT_GPU_HEADER_BYTES + FBT_GPU_RING_BYTES)

/*
 * Whether the ring stays within RLIMIT_FSIZE, which covers memfds too. Beyond it the kernel kills
 * the process with SIGXFSZ.
 */
static bool may_be_large(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= RING_MAP_BYTES;
}

/*
 * Allocates pages before they are used. Touching a page that cannot be allocated kills the process
 * (SIGBUS), for example where memory is not overcommitted. Errors other than ENOSPC and ENOMEM are
 * ignored.
 */
static int reserve(const struct shim_ring *ring, size_t size)
{
	if (!may_be_large() || !fallocate(ring->file.fd, 0, 0, (off_t)size))
		return 0;
	return errno == ENOSPC || errno == ENOMEM ? -errno : 0;
}

static int fill(struct shim_ring *ring)
{
	void *memory;
	int err;

	if (!may_be_large())
		return -EFBIG;
	if (ftruncate(ring->file.fd, RING_MAP_BYTES))
		return -errno;
	/* Seal the file before anyone maps it: truncation would give readers SIGBUS. */
	if (fcntl(ring->file.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	err = reserve(ring, FBT_GPU_HEADER_BYTES + SHIM_RING_FIRST);
	if (err)
		return err;
	ring->reserved = SHIM_RING_FIRST;
	memory = mmap(NULL, RING_MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring->file.fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	/* A forked child must not write into the ring of its parent. */
	madvise(memory, RING_MAP_BYTES, MADV_DONTFORK);
	ring->shared = memory;
	ring->bytes = (uint8_t *)memory + FBT_GPU_HEADER_BYTES;
	ring->head = 0;
	ring->shared->version = FBT_GPU_VERSION;
	ring->shared->header_bytes = FBT_GPU_HEADER_BYTES;
	ring->shared->ring_bytes = FBT_GPU_RING_BYTES;
	__atomic_store_n(&ring->shared->magic, FBT_GPU_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

int shim_ring__create(struct shim_ring *ring)
{
	int err = own_memfd_make(&ring->file, FBT_GPU_MEMFD);

	if (err)
		return err;
	err = fill(ring);
	if (err)
		own_memfd_close(&ring->file);
	return err;
}

int shim_ring__reserve(struct shim_ring *ring)
{
	int err = own_memfd_is_there(&ring->file) ? reserve(ring, RING_MAP_BYTES) : 0;

	if (!err)
		ring->reserved = FBT_GPU_RING_BYTES;
	return err;
}

void shim_ring__destroy(struct shim_ring *ring)
{
	munmap(ring->shared, RING_MAP_BYTES);
	own_memfd_close(&ring->file);
}

void shim_ring__close_in_child(struct shim_ring *ring)
{
	own_memfd_close(&ring->file);
}

static uint64_t room(const struct shim_ring *ring, enum shim_frame_kind kind)
{
	uint64_t tail = __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
	uint64_t used = ring->head - tail;
	uint64_t limit = FBT_GPU_RING_BYTES - (kind == SHIM_FRAME_RECORD ? SHIM_RING_RESERVE : 0);

	if (ring->reserved < FBT_GPU_RING_BYTES && ring->head + FBT_GPU_FRAME_MAX > ring->reserved)
		return 0;
	/* An impossible tail counts as a full ring. */
	return tail <= ring->head && used < limit ? limit - used : 0;
}

static void copy(struct shim_ring *ring, const void *data, size_t size)
{
	size_t place = ring->head % FBT_GPU_RING_BYTES;
	size_t first = FBT_GPU_RING_BYTES - place;

	if (first > size)
		first = size;
	memcpy(ring->bytes + place, data, first);
	memcpy(ring->bytes, (const uint8_t *)data + first, size - first);
	ring->head += size;
}

bool shim_ring__put(struct shim_ring *ring, const struct fbt_header *frame,
		    enum shim_frame_kind kind)
{
	if (room(ring, kind) < frame->size)
		return false;
	copy(ring, frame, frame->size);
	return true;
}

void shim_ring__publish(struct shim_ring *ring)
{
	__atomic_store_n(&ring->shared->head, ring->head, __ATOMIC_RELEASE);
}

bool shim_ring__put_strings(struct shim_ring *ring, const void *record, size_t size,
			    enum fbt_event_type type, enum shim_frame_kind kind,
			    const char *const *strings, size_t count)
{
	uint8_t frame[FBT_GPU_FRAME_MAX] __attribute__((aligned(8)));
	struct fbt_header *header = (struct fbt_header *)frame;
	size_t used = size;

	memcpy(frame, record, size);
	for (size_t i = 0; i < count; i++) {
		/* The room for this string, since the others need at least their NUL. */
		size_t most = sizeof(frame) - used - (count - i);
		size_t length = strnlen(strings[i], most);

		memcpy(frame + used, strings[i], length);
		used += length;
		frame[used++] = '\0';
	}
	while (used % 8)
		frame[used++] = '\0';
	header->type = (uint16_t)type;
	header->size = (uint32_t)used;
	return shim_ring__put(ring, header, kind);
}
