/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shim/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "model/event.h"
#include "proc/maps.h"
#include "proc/open.h"
#include "proc/process.h"
#include "sandbox/broker.h"

/* The memfd's name in /proc/PID/maps. */
#define MEMFD_PATH "/memfd:" FBT_GPU_MEMFD
/* A hostile process may have many files of that name: look at no more than this many. */
#define CANDIDATES_MAX 16
/*
 * … and a million descriptors, each of which costs a microsecond or more while the other rings
 * wait: after this many, take the file where it is mapped.
 */
#define DESCRIPTORS_MAX 16384

#define PAGE	       4096
#define RING_BYTES_MIN (64u << 10)
#define RING_BYTES_MAX (256u << 20)
#define SEALS	       (F_SEAL_SHRINK | F_SEAL_GROW)
/* The holder may release the lock between our attempt and the query for its holder. */
#define LOCK_TRIES 3
/* A lock of one byte. Byte 0 is the lock that counts; byte 1 names its holder (see take_lock). */
static struct flock byte_lock(off_t at)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

/* The memfds named MEMFD_PATH that a process has mapped. */
struct mapped_files {
	uint32_t thread; /* a living thread of the process */
	dev_t device;
	uint64_t inodes[CANDIDATES_MAX];
	size_t count;
};

static bool knows(const struct mapped_files *files, uint64_t inode)
{
	for (size_t i = 0; i < files->count; i++) {
		if (files->inodes[i] == inode)
			return true;
	}
	return false;
}

/* Callback of maps_search. Returns true, which ends the search, when the array is full. */
static bool collect(const struct mapping *mapping, const void *ctx)
{
	struct mapped_files *files = *(struct mapped_files *const *)ctx;
	bool ours = mapping->path && !strcmp(mapping->path, MEMFD_PATH) &&
		    makedev(mapping->device_major, mapping->device_minor) == files->device;

	if (ours && !knows(files, mapping->inode))
		files->inodes[files->count++] = mapping->inode;
	return files->count == CANDIDATES_MAX;
}

/*
 * Collects the memfds that are mapped. A forked child inherits the descriptor but not the mapping
 * (MADV_DONTFORK), so only mapped files count. Reads maps once, since it may be long. 0 or -errno.
 */
static int collect_mapped(uint32_t thread, struct mapped_files *files)
{
	int err = memfd_device(&files->device);

	files->thread = thread;
	files->count = 0;
	if (!err)
		maps_search(thread, MEMFD_PATH, collect, &files);
	return err;
}

/* Whether a mapping stays valid whatever the process does: the file is sealed and large enough. */
static bool is_sound(int fd, const struct fbt_gpu_ring *header)
{
	struct stat status;

	if (header->header_bytes < sizeof(*header) || header->header_bytes > RING_BYTES_MIN ||
	    header->header_bytes % PAGE || header->ring_bytes % PAGE ||
	    header->ring_bytes < RING_BYTES_MIN || header->ring_bytes > RING_BYTES_MAX)
		return false;
	return !fstat(fd, &status) &&
	       (uint64_t)status.st_size >= header->header_bytes + header->ring_bytes;
}

/* The shim writes magic last: without it the ring is still being created (-ENOENT). */
static int check_header(int fd, struct gpu_memfd *found)
{
	struct fbt_gpu_ring *header = &found->header;
	ssize_t got = pread(fd, header, sizeof(*header), 0);
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return -EBADMSG;
	if (got != sizeof(*header))
		return seals & F_SEAL_GROW ? -EBADMSG : -ENOENT;
	if (!header->magic)
		return -ENOENT;
	if (header->magic != FBT_GPU_MAGIC || (seals & SEALS) != SEALS)
		return -EBADMSG;
	if (header->version != FBT_GPU_VERSION) {
		found->version = header->version;
		return -EPROTONOSUPPORT;
	}
	return is_sound(fd, header) ? 0 : -EBADMSG;
}

/*
 * Finds who holds the lock. -EBUSY: another tracer, found->holder if it is known. -ENOENT: we do;
 * or tgid itself does, which is then a tracer that has mapped its target's ring.
 */
static int ask_holder(int fd, uint32_t tgid, struct gpu_memfd *found)
{
	struct flock named = byte_lock(1);
	struct mapped_files ours;
	struct stat status;
	int err;

	if (fcntl(fd, F_GETLK, &named) || fstat(fd, &status))
		return -errno;
	/*
	 * l_pid is 0 if the holder is in another PID namespace. Byte 1 is free if the holder has
	 * only locked byte 0 so far.
	 */
	found->holder = named.l_type != F_UNLCK && named.l_pid > 0 ? (uint32_t)named.l_pid : 0;
	if (found->holder)
		return found->holder == tgid ? -ENOENT : -EBUSY;
	err = collect_mapped((uint32_t)getpid(), &ours);
	if (err)
		return err;
	return knows(&ours, status.st_ino) ? -ENOENT : -EBUSY;
}

/*
 * The lock that counts is an open file description lock. A classic lock would be released when
 * another descriptor of the file is closed, as in a process between vfork and execve, which shares
 * our memory. The second lock, a classic one, only tells others our pid.
 */
static int take_lock(int fd, uint32_t tgid, struct gpu_memfd *found)
{
	int err = -EBUSY;

	for (int i = 0; i < LOCK_TRIES && err == -EBUSY; i++) {
		struct flock lock = byte_lock(0), named = byte_lock(1);

		if (!fcntl(fd, F_OFD_SETLK, &lock)) {
			fcntl(fd, F_SETLK, &named);
			return 0;
		}
		if (errno != EACCES && errno != EAGAIN)
			return -errno;
		err = ask_holder(fd, tgid, found);
	}
	return err;
}

/* The number may refer to another file by now: accept only a file that was found in maps. */
static int open_candidate(int folder, const char *number, const struct mapped_files *files)
{
	struct stat status;
	int fd;

	if (broker_is_there())
		fd = broker_open(BROKER_MEMFD, files->thread, (uint32_t)strtoul(number, NULL, 10),
				 NULL);
	else
		fd = memfd_open(folder, number, files->device);
	if (fd < 0 || (!fstat(fd, &status) && knows(files, status.st_ino)))
		return fd;
	close(fd);
	return -ENOENT;
}

static int open_mapped(uint32_t thread)
{
	if (broker_is_there())
		return broker_open(BROKER_MEMFD, thread, BROKER_MAPPED, NULL);
	return memfd_open_mapped(thread, FBT_GPU_MEMFD);
}

/* Whether that is permitted, and finds a file. */
static bool can_open_mapped(uint32_t thread)
{
	int fd = open_mapped(thread);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Takes the descriptor of a candidate; returns it if the ring was checked and locked, or -errno. */
static int try_candidate(int fd, uint32_t tgid, struct gpu_memfd *found)
{
	int err;

	if (fd < 0)
		return fd;
	err = check_header(fd, found);
	if (!err)
		err = take_lock(fd, tgid, found);
	if (err)
		close(fd);
	return err ? err : fd;
}

int gpu_memfd_serve(const void *nothing, const struct broker_order *order)
{
	if (order->number == BROKER_MAPPED)
		return memfd_open_mapped(order->tgid, FBT_GPU_MEMFD);
	return memfd_open_named(order->tgid, order->number, FBT_GPU_MEMFD);
}

/*
 * Takes the first usable ring. If there is none, returns the most specific error: "another version"
 * or "another tracer" says more than "not a ring".
 */
int gpu_memfd_open(uint32_t tgid, struct gpu_memfd *found)
{
	uint32_t thread = processes_live_thread(tgid);
	int fd = -ENOENT, tried = 0, looked = 0, err;
	struct mapped_files files;
	bool gives_up = false;
	struct dirent *entry;
	char path[PROC_PATH_MAX];
	DIR *folder;

	memset(found, 0, sizeof(*found));
	proc_path(path, (struct proc_ref){.tgid = thread}, "fd");
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	/*
	 * Search the mappings first: there are fewer of them than files, and they are read faster.
	 */
	err = collect_mapped(thread, &files);
	if (err)
		fd = err;
	if (err || !files.count)
		tried = CANDIDATES_MAX;
	while (fd < 0 && tried < CANDIDATES_MAX && !gives_up && (entry = readdir(folder))) {
		int candidate = memfd_is_named(dirfd(folder), entry->d_name, FBT_GPU_MEMFD);

		gives_up = ++looked == DESCRIPTORS_MAX && can_open_mapped(thread);
		if (candidate < 0)
			fd = candidate;
		if (candidate <= 0)
			continue;
		tried++;
		candidate = try_candidate(open_candidate(dirfd(folder), entry->d_name, &files),
					  tgid, found);
		if (candidate >= 0 || fd == -ENOENT || (fd == -EBADMSG && candidate != -ENOENT))
			fd = candidate;
	}
	closedir(folder);
	/* A program that closes all of its descriptors, as daemons do, still has the ring mapped.
	 */
	if (!tried || (gives_up && fd < 0))
		fd = try_candidate(open_mapped(thread), tgid, found);
	return fd;
}

/* Number of bytes that are copied at once. */
#define CHUNK_BYTES (64u << 10)

_Static_assert(CHUNK_BYTES > FBT_GPU_FRAME_MAX, "a whole frame must fit");

struct gpu_ring {
	int fd; /* holds the lock that keeps other tracers out */
	struct fbt_gpu_ring *shared;
	const unsigned char *bytes; /* of the ring */
	uint32_t header_bytes;
	uint64_t ring_bytes;
	uint64_t tail;
	uint64_t head; /* as last read */
	uint32_t armed;
	uint32_t beat;
	bool asked;  /* we have armed the shim: armed is odd */
	bool broken; /* positions make no sense, so it is no longer read */
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
	/* An earlier tracer or the process may have written the position: check it. */
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
	syscall(SYS_futex, &ring->shared->armed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gpu_ring__arm(struct gpu_ring *ring)
{
	/* A tracer that was killed leaves armed odd, so add 2 to change it. */
	ring->armed += ring->armed % 2 ? 2 : 1;
	ring->asked = true;
	ring->skipped = 0;
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

static bool has_answered(const struct gpu_ring *ring)
{
	return __atomic_load_n(&ring->shared->served, __ATOMIC_ACQUIRE) == ring->armed;
}

bool gpu_ring__is_pending(const struct gpu_ring *ring)
{
	return ring->asked && !has_answered(ring);
}

bool gpu_ring__is_dead(const struct gpu_ring *ring)
{
	return __atomic_load_n(&ring->shared->phase, __ATOMIC_ACQUIRE) == FBT_GPU_DEAD;
}

bool gpu_ring__is_dormant(const struct gpu_ring *ring)
{
	return gpu_ring__is_dead(ring) ||
	       (has_answered(ring) &&
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

/* Copies records to our own memory, where the process cannot change them. */
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

/*
 * Returns the number of bytes in whole frames of the chunk. -EBADMSG: a frame has a bad size, so
 * the next one cannot be found.
 */
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
