/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A minimal reader of a shim's ring: finds the ring in a process, arms the shim, reads frames. It
 * uses nothing of user/, so that it tests the contract of fbt_gpu.h.
 */
#ifndef FBT_TESTS_SHIM_FIXTURE_H
#define FBT_TESTS_SHIM_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "fbt_gpu.h"

#define PEER_MAP_BYTES (FBT_GPU_HEADER_BYTES + FBT_GPU_RING_BYTES)

struct peer {
	struct fbt_gpu_ring *shared;
	const uint8_t *bytes;
	uint64_t counts[32]; /* frames by type */
	uint64_t works[FBT_GPU_WORK_KIND_COUNT];
	uint64_t apis[FBT_GPU_API_CLASS_COUNT];
	struct fbt_gpu_flush flush; /* the latest */
	struct fbt_gpu_clock clock; /* the latest */
	struct fbt_gpu_state state; /* the latest */
	char detail[512];
	char path[512];
	uint32_t unnamed;      /* work and calls whose name was not sent before them */
	uint32_t before_clock; /* records before the first clock frame */
	bool named[FBT_GPU_NAMES_MAX + 1];
	char names[FBT_GPU_NAMES_MAX + 1][64]; /* the first 63 bytes of each */
	void (*on_frame)(void *ctx, const struct fbt_header *frame);
	void *ctx;
};

/* The number of the memfd's descriptor in the process, or -1. */
static inline int peer_find_fd(pid_t pid, int *count)
{
	char path[64];
	char target[64];
	struct dirent *entry;
	int found = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	*count = 0;
	while (dir && (entry = readdir(dir))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%.20s", (int)pid, entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		if (strcmp(target, "/memfd:" FBT_GPU_MEMFD " (deleted)") == 0) {
			found = atoi(entry->d_name);
			++*count;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Maps the ring of a process. false: the process has no ring. */
static inline bool peer_open(struct peer *peer, pid_t pid)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	char path[64];
	void *memory;
	int count, given;
	int fd = peer_find_fd(pid, &count);

	memset(peer, 0, sizeof(*peer));
	if (fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* Before it is sealed the ring is still being created, and its mapping has no pages yet. */
	given = fcntl(fd, F_GET_SEALS);
	/* -1: another file has taken the number. */
	if (given < 0 || (given & seals) != seals) {
		close(fd);
		return false;
	}
	memory = mmap(NULL, PEER_MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return false;
	while (__atomic_load_n((uint64_t *)memory, __ATOMIC_ACQUIRE) != FBT_GPU_MAGIC)
		;
	peer->shared = memory;
	peer->bytes = (uint8_t *)memory + FBT_GPU_HEADER_BYTES;
	return true;
}

static inline void peer_close(struct peer *peer)
{
	if (peer->shared)
		munmap(peer->shared, PEER_MAP_BYTES);
	peer->shared = NULL;
}

static inline void peer_wish(struct peer *peer, uint32_t value)
{
	__atomic_store_n(&peer->shared->armed, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, &peer->shared->armed, FUTEX_WAKE, 1000, NULL, NULL, 0);
}

static inline void peer_sleep_ms(unsigned int ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* Copies as much of the text as fits. */
static inline void peer_copy(char *to, size_t size, const char *text)
{
	size_t length = strnlen(text, size - 1);

	memcpy(to, text, length);
	to[length] = '\0';
}

static inline void peer_keep_strings(struct peer *peer, const uint8_t *frame)
{
	const char *detail = (const char *)frame + sizeof(struct fbt_gpu_state);

	peer_copy(peer->detail, sizeof(peer->detail), detail);
	peer_copy(peer->path, sizeof(peer->path), detail + strlen(detail) + 1);
}

static inline void peer_take_name(struct peer *peer, const uint8_t *frame)
{
	const struct fbt_gpu_name *name = (const void *)frame;

	if (name->id == 0 || name->id > FBT_GPU_NAMES_MAX)
		return;
	peer->named[name->id] = true;
	peer_copy(peer->names[name->id], sizeof(peer->names[0]),
		  (const char *)frame + sizeof(*name));
}

static inline void peer_take(struct peer *peer, const uint8_t *frame)
{
	const struct fbt_header *header = (const void *)frame;
	uint32_t name = 0;

	peer->counts[header->type % 32]++;
	switch (header->type) {
	case FBT_EVENT_GPU_NAME:
		peer_take_name(peer, frame);
		break;
	case FBT_EVENT_GPU_WORK:
		peer->works[((const struct fbt_gpu_work *)header)->kind]++;
		name = ((const struct fbt_gpu_work *)header)->name;
		break;
	case FBT_EVENT_GPU_API:
		peer->apis[((const struct fbt_gpu_api *)header)->api_class]++;
		name = ((const struct fbt_gpu_api *)header)->name;
		break;
	case FBT_EVENT_GPU_FLUSH:
		peer->flush = *(const struct fbt_gpu_flush *)header;
		break;
	case FBT_EVENT_GPU_CLOCK:
		peer->clock = *(const struct fbt_gpu_clock *)header;
		break;
	case FBT_EVENT_GPU_STATE:
		peer->state = *(const struct fbt_gpu_state *)header;
		peer_keep_strings(peer, frame);
		break;
	default:
		break;
	}
	if (header->type >= FBT_EVENT_GPU_WORK && header->type <= FBT_EVENT_GPU_OVERHEAD &&
	    peer->counts[FBT_EVENT_GPU_CLOCK] == 0)
		peer->before_clock++;
	peer->unnamed += name && !peer->named[name];
	if (peer->on_frame)
		peer->on_frame(peer->ctx, header);
}

/* Reads all frames. false: a frame is invalid. */
static inline bool peer_read(struct peer *peer)
{
	uint64_t head = __atomic_load_n(&peer->shared->head, __ATOMIC_ACQUIRE);
	uint64_t tail = peer->shared->tail;

	while (tail != head) {
		uint8_t frame[FBT_GPU_FRAME_MAX] __attribute__((aligned(8)));
		const struct fbt_header *header = (const void *)frame;

		for (size_t i = 0; i < sizeof(*header); i++)
			frame[i] = peer->bytes[(tail + i) % FBT_GPU_RING_BYTES];
		if (header->size < sizeof(*header) || header->size % 8 ||
		    header->size > sizeof(frame) || header->size > head - tail)
			return false;
		for (size_t i = 0; i < header->size; i++)
			frame[i] = peer->bytes[(tail + i) % FBT_GPU_RING_BYTES];
		peer_take(peer, frame);
		tail += header->size;
		__atomic_store_n(&peer->shared->tail, tail, __ATOMIC_RELEASE);
	}
	return true;
}

/* Reads and beats until the shim has served the wish. false: it did not in time. */
static inline bool peer_await(struct peer *peer, uint32_t wish)
{
	for (int i = 0; i < 10000; i++) {
		__atomic_fetch_add(&peer->shared->beat, 1, __ATOMIC_RELEASE);
		if (__atomic_load_n(&peer->shared->served, __ATOMIC_ACQUIRE) == wish)
			return peer_read(peer);
		if (!peer_read(peer))
			return false;
		peer_sleep_ms(1);
	}
	return false;
}

#endif
