/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_memfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "broker.h"
#include "map_search.h"
#include "memfd.h"
#include "processes.h"

/* What /proc calls it. */
#define MEMFD_PATH "/memfd:" FBT_GPU_MEMFD
#define MEMFD_LINK MEMFD_PATH " (deleted)"
/* A process may have more files of that name than a shim makes; no more of them are looked at. */
#define CANDIDATES_MAX 16

#define PAGE	       4096
#define RING_BYTES_MIN (64u << 10)
#define RING_BYTES_MAX (256u << 20)
#define SEALS	       (F_SEAL_SHRINK | F_SEAL_GROW)
/* How often a lock is asked for that its holder gives back just then. */
#define LOCK_TRIES 3
#define HELD_LOCK                                                                                  \
	{                                                                                          \
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1                  \
	}
#define NAMED_LOCK                                                                                 \
	{                                                                                          \
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1                  \
	}

/* What a process has mapped of that name, and of the kernel's own file system for such memory. */
struct mapped_files {
	uint32_t thread; /* whose they are */
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

/* Whether there is room for no more. */
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
 * A child has the descriptors of its parent, but not this memory: the shim asks for that. All at
 * once: a process may have so many mappings that to read them takes a while. 0 or -errno.
 */
static int collect_mapped(uint32_t thread, struct mapped_files *files)
{
	int err = memfd_device(&files->device);

	files->thread = thread;
	files->count = 0;
	if (!err)
		map_search(thread, MEMFD_PATH, collect, &files);
	return err;
}

/* Whether what is mapped of it can be read and written, whatever the process does. */
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

/* Magic is written last: before it is there, the shim has not come so far. */
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

/* -ENOENT: it is a tracer that has it, and this the ring of what it traces; or we do, see below. */
static int ask_holder(int fd, uint32_t tgid, struct gpu_memfd *found)
{
	struct flock named = NAMED_LOCK;
	struct mapped_files ours;
	struct stat status;
	int err;

	if (fcntl(fd, F_GETLK, &named) || fstat(fd, &status))
		return -errno;
	/* No number: it is in another PID namespace, or is not a tracer that takes both. */
	found->holder = named.l_type != F_UNLCK && named.l_pid > 0 ? (uint32_t)named.l_pid : 0;
	if (found->holder)
		return found->holder == tgid ? -ENOENT : -EBUSY;
	err = collect_mapped((uint32_t)getpid(), &ours);
	if (err)
		return err;
	return knows(&ours, status.st_ino) ? -ENOENT : -EBUSY;
}

/*
 * The first lock is the descriptor's: a process has the memory of another between vfork and execve,
 * and to close what was opened by the one must not let go of what was by the other. The second one,
 * which it does let go of, is there to say who we are.
 */
static int take_lock(int fd, uint32_t tgid, struct gpu_memfd *found)
{
	int err = -EBUSY;

	for (int i = 0; i < LOCK_TRIES && err == -EBUSY; i++) {
		struct flock lock = HELD_LOCK, named = NAMED_LOCK;

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

/* By now the number may stand for another file: only what was collected is looked into. */
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

/* A descriptor that is checked and locked, or -errno. */
static int try_candidate(int folder, const char *number, const struct mapped_files *files,
			 uint32_t tgid, struct gpu_memfd *found)
{
	int fd = open_candidate(folder, number, files), err;

	if (fd < 0)
		return fd;
	err = check_header(fd, found);
	if (!err)
		err = take_lock(fd, tgid, found);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* Whether it is one: -EACCES if we may not know. */
static int is_candidate(int folder, const char *number)
{
	char link[sizeof(MEMFD_LINK) + 1];
	ssize_t length = readlinkat(folder, number, link, sizeof(link));

	if (length < 0 && (errno == EACCES || errno == EPERM))
		return -EACCES;
	return length == sizeof(MEMFD_LINK) - 1 && !memcmp(link, MEMFD_LINK, (size_t)length);
}

int gpu_memfd_serve(const void *nothing, const struct broker_order *order)
{
	char path[64], number[16];
	int folder, fd;
	dev_t device;

	(void)nothing;
	fd = memfd_device(&device);
	if (fd)
		return fd;
	snprintf(path, sizeof(path), "/proc/%u/fd", order->tgid);
	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	snprintf(number, sizeof(number), "%u", order->number);
	fd = is_candidate(folder, number) > 0 ? memfd_open(folder, number, device) : -ENOENT;
	close(folder);
	return fd;
}

/*
 * The first that is sound; if none is, what is wrong with the one that comes nearest. The fd of
 * another version or tracer says more than that of something that is no ring.
 */
int gpu_memfd_open(uint32_t tgid, struct gpu_memfd *found)
{
	uint32_t thread = processes_living_thread(tgid);
	int fd = -ENOENT, tried = 0, err;
	struct mapped_files files;
	struct dirent *entry;
	char path[64];
	DIR *folder;

	memset(found, 0, sizeof(*found));
	snprintf(path, sizeof(path), "/proc/%u/fd", thread);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	/* A process has fewer mappings than files, and each is looked at faster. */
	err = collect_mapped(thread, &files);
	if (err)
		fd = err;
	if (err || !files.count)
		tried = CANDIDATES_MAX;
	while (fd < 0 && tried < CANDIDATES_MAX && (entry = readdir(folder))) {
		int candidate = is_candidate(dirfd(folder), entry->d_name);

		if (candidate < 0)
			fd = candidate;
		if (candidate <= 0)
			continue;
		tried++;
		candidate = try_candidate(dirfd(folder), entry->d_name, &files, tgid, found);
		if (candidate >= 0 || fd == -ENOENT || (fd == -EBADMSG && candidate != -ENOENT))
			fd = candidate;
	}
	closedir(folder);
	return fd;
}
