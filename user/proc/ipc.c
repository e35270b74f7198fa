/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/ipc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/maps.h"
#include "proc/open.h"

static bool begins_with(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

/*
 * Two processes that have the same device open share nothing by that. What has no path is an
 * anonymous inode, which is one object for all of its users, as a driver's buffers may be. The
 * inode of a SysV segment is its id, which another IPC namespace may have given, too.
 */
static bool may_be_shared(const struct mapping *mapping)
{
	const char *path = mapping->path;

	if (!path || !mapping->shared || !mapping->writable || begins_with(path, "/dmabuf:") ||
	    begins_with(path, "/SYSV"))
		return false;
	return !begins_with(path, "/dev/") || begins_with(path, "/dev/shm/") ||
	       begins_with(path, "/dev/zero") || begins_with(path, "/dev/hugepages/");
}

/* The part of a line in maps that says that it is shared and writable. */
#define SHARED_WRITABLE " rw-s "

static bool take_memory(const struct mapping *mapping, const void *ctx)
{
	shared_memory_vec *memory = *(shared_memory_vec *const *)ctx;
	struct shared_memory taken = {mapping->start, mapping->end, mapping->inode,
				      mapping->device_major, mapping->device_minor};

	if (!may_be_shared(mapping))
		return false;
	return memory->count >= SHARED_MEMORY_MAX || vec_push(memory, taken);
}

bool shared_memory_read(uint32_t tgid, shared_memory_vec *memory)
{
	(void)maps_search(tgid, SHARED_WRITABLE, take_memory, &memory);
	return memory->count != 0;
}

const struct shared_memory *shared_memory_at(const shared_memory_vec *memory, uint64_t address)
{
	vec_for_each (item, memory) {
		if (address >= item->start && address < item->end)
			return item;
	}
	return NULL;
}

struct wanted {
	const struct shared_memory *memory;
	size_t count;
};

static bool is_wanted(const struct mapping *mapping, const void *ctx)
{
	const struct wanted *wanted = ctx;

	for (size_t i = 0; mapping->shared && mapping->writable && i < wanted->count; i++) {
		const struct shared_memory *memory = &wanted->memory[i];

		if (mapping->inode == memory->inode &&
		    mapping->device_major == memory->device_major &&
		    mapping->device_minor == memory->device_minor)
			return true;
	}
	return false;
}

bool shared_memory_is_mapped(uint32_t tgid, const struct shared_memory *memory, size_t count)
{
	struct wanted wanted = {memory, count};

	return count && maps_search(tgid, SHARED_WRITABLE, is_wanted, &wanted);
}

/* "pipe:[123]", "socket:[123]" */
static bool parse_link(const char *link, struct far_end *end)
{
	end->is_pipe = begins_with(link, "pipe:[");
	if (!end->is_pipe && !begins_with(link, "socket:["))
		return false;
	end->inode = strtoull(strchr(link, '[') + 1, NULL, 10);
	return end->inode != 0;
}

bool far_end_find(uint32_t tgid, uint32_t fd, int diag, struct far_end *end)
{
	char name[32], link[64];

	snprintf(name, sizeof(name), "fd/%" PRIu32, fd);
	if (!proc_readlink((struct proc_ref){.tgid = tgid}, name, link, sizeof(link)) ||
	    !parse_link(link, end))
		return false;
	if (!end->is_pipe)
		end->inode = unix_diag_peer(diag, end->inode);
	return end->inode != 0;
}

/* The mode of a link in fd says how the file was opened. */
static bool may_write(int folder, const char *name)
{
	struct stat status;

	return !fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) && status.st_mode & S_IWUSR;
}

static bool is_far_end(int folder, const char *name, const struct far_end *ends, size_t count)
{
	struct far_end end;
	char link[64];
	ssize_t length = readlinkat(folder, name, link, sizeof(link) - 1);

	if (length <= 0)
		return false;
	link[length] = '\0';
	if (!parse_link(link, &end))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ends[i].is_pipe == end.is_pipe && ends[i].inode == end.inode)
			return !end.is_pipe || may_write(folder, name);
	}
	return false;
}

bool far_ends_are_held(uint32_t tgid, const struct far_end *ends, size_t count)
{
	int fd = count ? proc_open((struct proc_ref){.tgid = tgid}, "fd", O_RDONLY | O_DIRECTORY)
		       : -1;
	const struct dirent *entry;
	bool found = false;
	size_t looked = 0;
	DIR *folder;

	folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (!folder) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && looked++ < DESCRIPTORS_MAX && (entry = readdir(folder)))
		found = is_far_end(dirfd(folder), entry->d_name, ends, count);
	closedir(folder);
	return found;
}

size_t epoll_watched(uint32_t tgid, uint32_t epoll, uint32_t *fds, size_t count)
{
	char name[32], line[256];
	size_t found = 0;
	FILE *file;

	snprintf(name, sizeof(name), "fdinfo/%" PRIu32, epoll);
	file = proc_fopen((struct proc_ref){.tgid = tgid}, name);
	if (!file)
		return 0;
	while (found < count && fgets(line, sizeof(line), file))
		found += sscanf(line, "tfd: %" SCNu32, &fds[found]) == 1;
	fclose(file);
	return found;
}

size_t poll_watched(struct memory *memory, uint32_t tgid, uint64_t address, uint64_t length,
		    uint32_t *fds, size_t count)
{
	struct memory_part part = {.address = address};
	struct pollfd watched;
	size_t most = 8, found = 0;

	most = count < most ? count : most;
	most = length < most ? (size_t)length : most;
	part.size = (uint32_t)(most * sizeof(watched));
	/* Addresses of the kernel's half are no offsets of a file. */
	if (!most || address > (uint64_t)INT64_MAX ||
	    memory__read(memory, (struct proc_ref){.tgid = tgid}, &part, 1))
		return 0;
	for (size_t i = 0; i < part.got / sizeof(watched); i++) {
		memcpy(&watched, part.data + i * sizeof(watched), sizeof(watched));
		if (watched.fd >= 0)
			fds[found++] = (uint32_t)watched.fd;
	}
	memory__wipe(memory);
	return found;
}
