/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_memfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "map_search.h"
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

/* inode: the one it must be; NULL: any. */
static bool is_memfd(const struct mapping *mapping, const void *inode)
{
	return mapping->path && !strcmp(mapping->path, MEMFD_PATH) &&
	       (!inode || mapping->inode == *(const ino_t *)inode);
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

/* A process that has the lock itself is a tracer, and this the ring of what it traces. */
static int take_lock(int fd, uint32_t tgid, struct gpu_memfd *found)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

		if (!fcntl(fd, F_SETLK, &lock))
			return 0;
		if (errno != EACCES && errno != EAGAIN)
			return -errno;
		if (fcntl(fd, F_GETLK, &lock))
			return -errno;
		if (lock.l_type != F_UNLCK) {
			found->holder = (uint32_t)lock.l_pid;
			return found->holder == tgid ? -ENOENT : -EBUSY;
		}
	}
	return -EBUSY;
}

/*
 * To look at a file is harmless, to open one may not be, and by now the number may stand for
 * another: only what is a plain memory file is opened. A descriptor, or -errno.
 */
static int open_memfd(int folder, const char *number, uint32_t thread)
{
	int looked = openat(folder, number, O_PATH | O_CLOEXEC), fd = -EBADMSG;
	struct statfs system;
	struct stat status;
	char path[64];

	if (looked < 0)
		return -errno;
	if (fstat(looked, &status) || fstatfs(looked, &system) || !S_ISREG(status.st_mode) ||
	    system.f_type != TMPFS_MAGIC)
		goto out;
	/* A child has the descriptors of its parent, but not this memory: the shim asks for that.
	 */
	if (!map_search(thread, MEMFD_PATH, is_memfd, &status.st_ino)) {
		fd = -ENOENT;
		goto out;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", looked);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = errno == EPERM || errno == EACCES ? -errno : -EBADMSG;
out:
	close(looked);
	return fd;
}

/* A descriptor that is checked and locked, or -errno. */
static int try_candidate(int folder, const char *number, uint32_t thread, uint32_t tgid,
			 struct gpu_memfd *found)
{
	int fd = open_memfd(folder, number, thread), err;

	if (fd < 0)
		return fd;
	err = check_header(fd, found);
	if (!err)
		err = take_lock(fd, tgid, found);
	if (err)
		close(fd);
	return err ? err : fd;
}

static bool is_candidate(int folder, const char *number)
{
	char link[sizeof(MEMFD_LINK) + 1];
	ssize_t length = readlinkat(folder, number, link, sizeof(link));

	return length == sizeof(MEMFD_LINK) - 1 && !memcmp(link, MEMFD_LINK, (size_t)length);
}

/*
 * The first that is sound; if none is, what is wrong with the one that comes nearest. The fd of
 * another version or tracer says more than that of something that is no ring.
 */
int gpu_memfd_open(uint32_t tgid, struct gpu_memfd *found)
{
	uint32_t thread = processes_living_thread(tgid);
	int fd = -ENOENT, tried = 0;
	struct dirent *entry;
	char path[64];
	DIR *folder;

	memset(found, 0, sizeof(*found));
	snprintf(path, sizeof(path), "/proc/%u/fd", thread);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	/* A process has fewer mappings than files, and each is looked at faster. */
	if (!map_search(thread, MEMFD_PATH, is_memfd, NULL))
		tried = CANDIDATES_MAX;
	while (fd < 0 && tried < CANDIDATES_MAX && (entry = readdir(folder))) {
		int candidate;

		if (!is_candidate(dirfd(folder), entry->d_name))
			continue;
		tried++;
		candidate = try_candidate(dirfd(folder), entry->d_name, thread, tgid, found);
		if (candidate >= 0 || fd == -ENOENT || (fd == -EBADMSG && candidate != -ENOENT))
			fd = candidate;
	}
	closedir(folder);
	return fd;
}
