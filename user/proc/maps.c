/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "proc/process.h"
#include "proc/status.h"

#define DELETED " (deleted)"
#define VDSO	"[vdso]"

/* The kernel escapes a newline in a path as \012, and no other character. */
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
	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &mapping->start, &mapping->end, mode, &mapping->offset, &mapping->device_major,
		   &mapping->device_minor, &mapping->inode, &path_at) != 7 ||
	    !path_at || strlen(mode) != 4)
		return -EBADMSG;
	mapping->readable = mode[0] == 'r';
	mapping->writable = mode[1] == 'w';
	mapping->executable = mode[2] == 'x';
	mapping->shared = mode[3] == 's';
	line += path_at;
	size = strcspn(line, "\n");
	if (!mapping->inode || *line != '/') {
		/* No process can give a mapping that name. */
		mapping->is_vdso =
			!mapping->inode && size == strlen(VDSO) && !strncmp(line, VDSO, size);
		return 0;
	}
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

bool mapping_is_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->device_major == b->device_major &&
	       a->device_minor == b->device_minor && !strcmp(a->path, b->path);
}

const char *mapping_name(const struct mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');

	return slash ? slash + 1 : mapping->path;
}

/* Calls take with each line until it returns non-zero, and returns that. -ESRCH if no lines. */
static int read_lines(struct proc_ref ref, int (*take)(void *ctx, const char *line), void *ctx)
{
	FILE *file = proc_fopen(ref, "maps");
	size_t capacity = 0;
	char *line = NULL;
	bool any = false;
	int err = 0;

	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	while (!err && getline(&line, &capacity, file) > 0) {
		any = true;
		err = take(ctx, line);
		errno = 0;
	}
	if (!err && ferror(file))
		err = errno ? -errno : -EIO;
	if (!err && !any)
		err = -ESRCH;
	free(line);
	fclose(file);
	return err;
}

/* Adds the mapping of a line if it is a wanted file. Skips a malformed line. */
static int add_file(mapping_vec *maps, const char *line,
		    bool (*is_wanted)(const mapping_vec *maps, const struct mapping *mapping))
{
	struct mapping mapping;
	int err = mapping_parse(&mapping, line);

	if (err)
		return err == -EBADMSG ? 0 : err;
	if (mapping.path && is_wanted(maps, &mapping)) {
		err = vec_push(maps, mapping);
		if (!err)
			return 0;
	}
	free(mapping.path);
	return err;
}

static bool is_new_code(const mapping_vec *maps, const struct mapping *mapping)
{
	vec_for_each (other, maps) {
		if (mapping_is_same_file(other, mapping))
			return false;
	}
	return mapping->executable;
}

static int add_code(void *maps, const char *line)
{
	return add_file(maps, line, is_new_code);
}

static bool is_any(const mapping_vec *maps, const struct mapping *mapping)
{
	(void)maps;
	(void)mapping;
	return true;
}

static int add_any(void *maps, const char *line)
{
	return add_file(maps, line, is_any);
}

/* Why a process has no memory map. */
static const char *explain_no_maps(uint32_t tgid)
{
	struct thread_stat stat;

	if (thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}))
		return "no such process";
	if (stat.flags & THREAD_KERNEL)
		return "is a kernel thread, which has no steps; name a user process";
	return "has exited";
}

/* /proc/TID exists for every thread, but tracing is per process: -EINVAL if tgid is a thread. */
static int check_is_process(uint32_t tgid, struct thread_status *status)
{
	int err = thread_status_read(status, (struct proc_ref){.tgid = tgid});

	if (err)
		return err;
	/* If the first thread has ended, the process is named by one of its other threads. */
	return status->tgid == tgid || processes_live_thread(status->tgid) == tgid ? 0 : -EINVAL;
}

static void explain_failure(uint32_t tgid, int err)
{
	struct thread_status status;

	if (check_is_process(tgid, &status) == -EINVAL)
		log_err("process %u: is a thread of process %u; use -p %u", tgid, status.tgid,
			status.tgid);
	else if (err == -EPERM)
		/* A security module denies root, too. */
		log_err("process %u: no permission to read its memory map: run with sudo or "
			"CAP_SYS_PTRACE; ferrum-bpftrace doctor %u shows what else is missing",
			tgid, tgid);
	else if (err == -ESRCH)
		log_err("process %u: %s", tgid, explain_no_maps(tgid));
	else if (err != -ENOMEM)
		log_err("process %u: /proc/%u/maps: %s", tgid, tgid, strerror(-err));
}

int maps_read_quietly(uint32_t tgid, mapping_vec *maps)
{
	struct thread_status status;
	int err = check_is_process(tgid, &status);

	if (err)
		return err;
	err = read_lines((struct proc_ref){.tgid = tgid}, add_code, maps);
	if (err)
		maps_free(maps);
	return err == -EACCES ? -EPERM : err;
}

int maps_read(uint32_t tgid, mapping_vec *maps)
{
	int err = maps_read_quietly(tgid, maps);

	if (err)
		explain_failure(tgid, err);
	return err;
}

int maps_read_all(struct proc_ref ref, mapping_vec *maps)
{
	return read_lines(ref, add_any, maps);
}

static int add_executable(void *ctx, const char *line)
{
	mapping_vec *maps = ctx;
	struct mapping mapping;
	int err = mapping_parse(&mapping, line);

	if (err)
		return err == -EBADMSG ? 0 : err;
	if (mapping.executable) {
		err = vec_push(maps, mapping);
		if (!err)
			return 0;
	}
	free(mapping.path);
	return err;
}

int maps_read_executable(struct proc_ref ref, mapping_vec *maps)
{
	return read_lines(ref, add_executable, maps);
}

void maps_free(mapping_vec *maps)
{
	vec_for_each (mapping, maps)
		free(mapping->path);
	vec_free(maps);
}

struct search {
	const char *part;
	bool (*is_wanted)(const struct mapping *mapping, const void *ctx);
	const void *ctx;
};

static int search_line(void *ctx, const char *line)
{
	const struct search *search = ctx;
	struct mapping mapping;
	bool found;

	if (!strstr(line, search->part) || mapping_parse(&mapping, line))
		return 0;
	found = search->is_wanted(&mapping, search->ctx);
	free(mapping.path);
	return found;
}

bool maps_search(uint32_t tgid, const char *part,
		 bool (*is_wanted)(const struct mapping *mapping, const void *ctx), const void *ctx)
{
	struct search search = {part, is_wanted, ctx};

	return read_lines((struct proc_ref){.tgid = tgid}, search_line, &search) > 0;
}

/*
 * Opens the path shown in maps, below prefix, if it leads to the mapped file. Only the inode is
 * compared, because on btrfs and overlayfs the device in maps differs from that in stat.
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
	char path[PROC_PATH_MAX], name[64];
	struct stat status;
	int fd, first;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, mapping->start,
		 mapping->end);
	proc_path(path, (struct proc_ref){.tgid = tgid}, name);
	first = regular_file_open(path, &status);
	if (first >= 0 || mapping->deleted)
		return first;
	/* The path is relative to the root of the process (container) or of the tool (chroot). */
	proc_path(path, (struct proc_ref){.tgid = tgid}, "root");
	fd = open_path(path, mapping);
	if (fd < 0 && fd != -ENOEXEC)
		fd = open_path("", mapping);
	return fd >= 0 || first == -ENOENT ? fd : first;
}

/* For maps_search. */
struct memfd_search {
	const char *name;
	uint64_t start, end;
};

static bool is_memfd(const struct mapping *mapping, const void *ctx)
{
	struct memfd_search *search = *(struct memfd_search *const *)ctx;

	if (!mapping->path || strncmp(mapping->path, "/memfd:", 7) != 0 ||
	    strcmp(mapping->path + 7, search->name) != 0)
		return false;
	search->start = mapping->start;
	search->end = mapping->end;
	return true;
}

int memfd_open_mapped(uint32_t tgid, const char *name)
{
	struct memfd_search search = {.name = name}, *ctx = &search;
	int folder, fd, is_named;
	dev_t device = 0;
	char place[64];

	fd = memfd_device(&device);
	if (fd)
		return fd;
	if (!maps_search(tgid, name, is_memfd, &ctx))
		return -ENOENT;
	folder = proc_open((struct proc_ref){.tgid = tgid}, "map_files", O_PATH | O_DIRECTORY);
	if (folder < 0)
		return folder;
	snprintf(place, sizeof(place), "%" PRIx64 "-%" PRIx64, search.start, search.end);
	is_named = memfd_is_named(folder, place, name);
	fd = is_named > 0 ? memfd_open(folder, place, device) : is_named < 0 ? is_named : -ENOENT;
	close(folder);
	return fd;
}

bool maps_call_locks(int64_t nr)
{
	static const int calls[] = {
		SYS_mmap,   SYS_munmap,	  SYS_mprotect, SYS_mremap,	SYS_brk,     SYS_mlock,
		SYS_mlock2, SYS_mlockall, SYS_munlock,	SYS_munlockall, SYS_clone,   SYS_clone3,
		SYS_execve, SYS_execveat, SYS_shmat,	SYS_shmdt,	SYS_madvise,
#ifdef SYS_fork
		SYS_fork,   SYS_vfork,
#endif
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (nr == calls[i])
			return true;
	}
	return false;
}

/* "9 0x7f…", of the call that the thread is in; -1: in none. false: it may not be read. */
static bool read_call(struct proc_ref ref, int64_t *nr)
{
	FILE *file = proc_fopen(ref, "syscall");
	bool is_refused;
	int fields;

	if (!file)
		return false;
	errno = 0;
	fields = fscanf(file, "%" SCNd64, nr);
	/* The kernel checks who reads it at the read. */
	is_refused = ferror(file) && errno != ESRCH;
	if (fields != 1)
		*nr = -1;
	fclose(file);
	return !is_refused;
}

bool maps_are_locked(uint32_t tgid)
{
	pid_vec threads = {0};
	bool found = false;

	(void)threads_list(tgid, &threads);
	for (size_t i = 0; i < threads.count && !found; i++) {
		const struct proc_ref ref = {tgid, threads.items[i]};
		struct thread_stat stat;
		int64_t nr;

		if (thread_stat_read(&stat, ref) || stat.state != 'D')
			continue;
		found = !read_call(ref, &nr) || maps_call_locks(nr);
	}
	vec_free(&threads);
	return found;
}
