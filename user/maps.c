/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "maps.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "processes.h"
#include "regular_file.h"

#define DELETED " (deleted)"

/* The kernel writes a newline in a path as \012, and nothing else in that way. */
static void unescape_newlines(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		bool is_newline = !strncmp(from, "\\012", 4);

		*to = is_newline ? '\n' : *from;
		from += is_newline ? 4 : 1;
	}
	*to = 0;
}

int mapping_parse(struct mapping *mapping, const char *line)
{
	size_t size;
	char mode[5];
	int path_at = 0;

	memset(mapping, 0, sizeof(*mapping));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &mapping->start, &mapping->end, mode, &mapping->device_major,
		   &mapping->device_minor, &mapping->inode, &path_at) != 6 ||
	    !path_at || strlen(mode) != 4)
		return -EBADMSG;
	mapping->executable = mode[2] == 'x';
	line += path_at;
	size = strcspn(line, "\n");
	if (!mapping->inode || *line != '/')
		return 0;
	if (size > strlen(DELETED) &&
	    !strncmp(line + size - strlen(DELETED), DELETED, strlen(DELETED))) {
		mapping->deleted = true;
		size -= strlen(DELETED);
	}
	mapping->path = strndup(line, size);
	if (!mapping->path)
		return -ENOMEM;
	unescape_newlines(mapping->path);
	return 0;
}

/* Flags and state of /proc/PID/stat: what a process without a memory map is. */
static const char *explain_no_maps(uint32_t tgid)
{
	char path[64], text[512];
	unsigned int flags = 0;
	const char *paren;
	char state = 0;
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	file = fopen(path, "re");
	if (!file)
		return "no such process";
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = 0;
	paren = strrchr(text, ')');
	if (!paren || sscanf(paren + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return "no such process";
	if (flags & 0x00200000) /* PF_KTHREAD */
		return "is a kernel thread, it has no steps; name a user process";
	return "has exited";
}

/* /proc/TID answers for every thread; uprobes and sums are per process. */
static int check_is_process(uint32_t tgid)
{
	uint32_t found = tgid;
	char path[64], line[128];
	FILE *file;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	file = fopen(path, "re");
	if (!file) {
		err = -errno;
		if (err == -ENOENT)
			err = -ESRCH;
		log_err("process %u: %s", tgid, err == -ESRCH ? "no such process" : strerror(-err));
		return err;
	}
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Tgid: %" SCNu32, &found) == 1)
			break;
	fclose(file);
	/* By such a thread /proc knows the files of a process whose first thread has ended. */
	if (found != tgid && processes_living_thread(found) != tgid) {
		log_err("process %u: is a thread of process %u; use -p %u", tgid, found, found);
		return -EINVAL;
	}
	return 0;
}

static bool has_file(mapping_vec *maps, const struct mapping *mapping)
{
	vec_for_each (other, maps) {
		if (other->inode == mapping->inode &&
		    other->device_major == mapping->device_major &&
		    other->device_minor == mapping->device_minor)
			return true;
	}
	return false;
}

static int add_line(mapping_vec *maps, const char *line)
{
	struct mapping mapping;
	int err = mapping_parse(&mapping, line);

	if (err == -EBADMSG)
		return 0;
	if (!err && mapping.path && mapping.executable && !has_file(maps, &mapping)) {
		err = vec_push(maps, mapping);
		if (!err)
			return 0;
	}
	free(mapping.path);
	return err;
}

static int fail_read(uint32_t tgid, int err)
{
	if (err == -EACCES || err == -EPERM) {
		log_err("process %u: its memory map may not be read: needs CAP_SYS_PTRACE "
			"(run as root); ferrum-bpftrace doctor %u says what is in the way",
			tgid, tgid);
		return -EPERM;
	}
	if (err == -ENOENT || err == -ESRCH) {
		log_err("process %u: %s", tgid, explain_no_maps(tgid));
		return -ESRCH;
	}
	log_err("process %u: /proc/%u/maps: %s", tgid, tgid, strerror(-err));
	return err;
}

int maps_read(uint32_t tgid, mapping_vec *maps)
{
	FILE *file = NULL;
	size_t lines = 0, capacity = 0;
	char *line = NULL;
	char path[64];
	int err;

	err = check_is_process(tgid);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	file = fopen(path, "re");
	if (!file) {
		err = fail_read(tgid, -errno);
		goto out;
	}
	errno = 0;
	while (getline(&line, &capacity, file) > 0) {
		lines++;
		err = add_line(maps, line);
		if (err)
			goto out;
		errno = 0;
	}
	if (ferror(file))
		err = fail_read(tgid, errno ? -errno : -EIO);
	else if (!lines)
		err = fail_read(tgid, -ESRCH);
out:
	free(line);
	if (file)
		fclose(file);
	if (err)
		maps_free(maps);
	return err;
}

void maps_free(mapping_vec *maps)
{
	vec_for_each (mapping, maps)
		free(mapping->path);
	vec_free(maps);
}

/*
 * Opens the path that maps shows, behind prefix, if it is the same file. Only the inode is
 * compared: btrfs and overlayfs show another device in maps than in stat.
 */
static int open_path(const char *prefix, const struct mapping *mapping)
{
	char path[PATH_MAX + 64];
	struct stat status;
	int fd;

	if (snprintf(path, sizeof(path), "%s%s", prefix, mapping->path) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = regular_file_open(path, &status);
	if (fd >= 0 && status.st_ino != mapping->inode) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int mapping_open(uint32_t tgid, const struct mapping *mapping)
{
	char path[128];
	struct stat status;
	int fd, first;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, tgid,
		 mapping->start, mapping->end);
	first = regular_file_open(path, &status);
	if (first >= 0 || mapping->deleted)
		return first;
	/* A container's path is that in its own root, a chroot's path is that in ours. */
	snprintf(path, sizeof(path), "/proc/%u/root", tgid);
	fd = open_path(path, mapping);
	if (fd < 0 && fd != -ENOEXEC)
		fd = open_path("", mapping);
	return fd >= 0 || first == -ENOENT ? fd : first;
}
