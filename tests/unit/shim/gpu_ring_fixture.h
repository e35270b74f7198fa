/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A played shim: an idle child holds the shared memory, and the test writes what a shim would
 * write. Include after cmocka.h.
 */
#ifndef FBT_GPU_RING_FIXTURE_H
#define FBT_GPU_RING_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fbt_gpu.h"

#define PLAYED_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define PLAYED_BYTES (1u << 20) /* of the ring */

struct player {
	int fd;
	struct fbt_gpu_ring *shared;
	unsigned char *bytes;
	uint64_t head;
	pid_t child;
};

/* Forks the child. It calls act() if there is one, then idles until it is killed. */
static inline void player_fork(struct player *player, void (*act)(struct player *player))
{
	player->child = fork();
	assert_true(player->child >= 0);
	if (player->child) {
		/* Children that are forked later must not have this shim's memory. */
		madvise(player->shared, FBT_GPU_HEADER_BYTES + PLAYED_BYTES, MADV_DONTFORK);
		return;
	}
	for (;;) {
		if (act)
			act(player);
		pause();
	}
}

/* A memfd of that many bytes, without a header. At least a header is mapped. */
static inline void player_make(struct player *player, size_t bytes, int seals)
{
	memset(player, 0, sizeof(*player));
	player->fd = memfd_create(FBT_GPU_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(player->fd >= 0);
	assert_int_equal(ftruncate(player->fd, (off_t)bytes), 0);
	if (seals)
		assert_int_equal(fcntl(player->fd, F_ADD_SEALS, seals), 0);
	player->shared = mmap(NULL, FBT_GPU_HEADER_BYTES + PLAYED_BYTES, PROT_READ | PROT_WRITE,
			      MAP_SHARED, player->fd, 0);
	assert_true(player->shared != MAP_FAILED);
	player->bytes = (unsigned char *)player->shared + FBT_GPU_HEADER_BYTES;
}

static inline void player_fill_header(struct player *player)
{
	player->shared->version = FBT_GPU_VERSION;
	player->shared->header_bytes = FBT_GPU_HEADER_BYTES;
	player->shared->ring_bytes = PLAYED_BYTES;
	player->shared->magic = FBT_GPU_MAGIC;
}

/* A ring as a shim creates it. */
static inline void player_start(struct player *player)
{
	player_make(player, FBT_GPU_HEADER_BYTES + PLAYED_BYTES, PLAYED_SEALS);
	player_fill_header(player);
	player_fork(player, NULL);
}

static inline void player_kill(struct player *player)
{
	if (player->child <= 0)
		return;
	kill(player->child, SIGKILL);
	waitpid(player->child, NULL, 0);
	player->child = 0;
}

static inline void player_stop(struct player *player)
{
	player_kill(player);
	munmap(player->shared, FBT_GPU_HEADER_BYTES + PLAYED_BYTES);
	close(player->fd);
}

/* Writes bytes at the head and moves the private head. player_publish() makes them visible. */
static inline void player_write(struct player *player, const void *data, size_t size)
{
	const unsigned char *from = data;

	for (size_t i = 0; i < size; i++)
		player->bytes[player->head++ % PLAYED_BYTES] = from[i];
}

static inline void player_publish(struct player *player)
{
	__atomic_store_n(&player->shared->head, player->head, __ATOMIC_RELEASE);
}

/* A record without strings. */
static inline void player_put(struct player *player, void *record, size_t size,
			      enum fbt_event_type type)
{
	struct fbt_header *header = record;

	header->type = (uint16_t)type;
	header->size = (uint32_t)size;
	player_write(player, record, size);
	player_publish(player);
}

static inline void player_put_state(struct player *player, enum fbt_gpu_status status,
				    const char *detail, const char *library)
{
	struct {
		struct fbt_gpu_state state;
		char strings[512];
	} frame = {.state = {.status = status,
			     .time_ns = clock_ns(CLOCK_MONOTONIC),
			     .cupti_version = 26,
			     .driver_version = 12080,
			     .shim_version = FBT_GPU_VERSION,
			     .clock_method = FBT_GPU_CLOCK_CALLBACK}};
	size_t size = strlen(detail) + strlen(library) + 2;

	assert_true(size <= sizeof(frame.strings));
	strcpy(frame.strings, detail);
	strcpy(frame.strings + strlen(detail) + 1, library);
	player_put(player, &frame, sizeof(frame.state) + ((size + 7) & ~(size_t)7),
		   FBT_EVENT_GPU_STATE);
}

static inline void player_put_kernel(struct player *player, uint32_t correlation, uint64_t start_ns,
				     uint64_t end_ns)
{
	struct fbt_gpu_work work = {.kind = FBT_GPU_KERNEL,
				    .start_ns = start_ns,
				    .end_ns = end_ns,
				    .correlation = correlation,
				    .stream = 7};

	player_put(player, &work, sizeof(work), FBT_EVENT_GPU_WORK);
}

static inline void player_put_flush(struct player *player, uint64_t time_ns, uint32_t last)
{
	struct fbt_gpu_flush flush = {.time_ns = time_ns, .last = last, .records = 3};

	player_put(player, &flush, sizeof(flush), FBT_EVENT_GPU_FLUSH);
}

#endif
