/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_thread.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "inject_file.h"

/* sched(7). The helper thread would inherit it, and with it the processor. */
#define POLICY_FIFO	1
#define POLICY_RR	2
#define POLICY_DEADLINE 6

#define SECCOMP_STRICT 1
#define HEADERS_MAX    64

/* Its longest line, of the groups, may have 65536 of them: who has so many is not offered. */
#define STATUS_BYTES 16384

struct range {
	uint64_t start;
	uint64_t end;
};

/* A thread that may be taken, and what it is sorted by. */
struct candidate {
	struct inject_thread thread;
	bool first; /* the one whose number is the process's */
	uint32_t filters;
	uint64_t sleeps;
};

typedef VEC(struct candidate) candidate_vec;

struct look {
	uint32_t tgid;
	struct range stub;
	struct range loader;
	bool loader_known;
	candidate_vec found;
};

static void format_path(char path[64], uint32_t tgid, uint32_t tid, const char *name)
{
	snprintf(path, 64, "/proc/%u/task/%u/%s", tgid, tid, name);
}

/* A thread that ends meanwhile shows it in several ways. */
static int map_error(int err)
{
	if (err == -ENOENT)
		return -ESRCH;
	return err == -EACCES ? -EPERM : err;
}

/* What there is of it, up to size - 1 bytes, as a string: 0 or -errno. */
static int read_text(uint32_t tgid, uint32_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t got;
	int fd, err = 0;

	format_path(path, tgid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return map_error(-errno);
	got = read(fd, text, size - 1);
	if (got < 0)
		err = map_error(-errno);
	else if (got == (ssize_t)size - 1)
		err = -E2BIG;
	text[got > 0 ? got : 0] = '\0';
	close(fd);
	return err ? err : got ? 0 : -ESRCH;
}

int inject_thread_parse(struct inject_thread *thread, const char *line)
{
	uint64_t *args = thread->args;
	int64_t nr;

	if (!strncmp(line, "running", strlen("running")))
		return -EAGAIN;
	if (sscanf(line, "%" SCNd64, &nr) != 1)
		return -EBADMSG;
	if (nr == -1)
		return -EAGAIN;
	if (nr < 0 || sscanf(line,
			     "%*d %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
			     " %" SCNx64 " %" SCNx64 " %" SCNx64,
			     &args[0], &args[1], &args[2], &args[3], &args[4], &args[5],
			     &thread->sp, &thread->pc) != 8)
		return -EBADMSG;
	thread->nr = (uint64_t)nr;
	return 0;
}

enum inject_rank inject_thread_rank(const struct inject_thread *thread)
{
	return inject_rank_of(thread->nr, thread->args);
}

static int read_call(struct inject_thread *thread, uint32_t tgid, uint32_t tid)
{
	char line[256];
	int err = read_text(tgid, tid, "syscall", line, sizeof(line));

	return err ? err : inject_thread_parse(thread, line);
}

bool inject_thread_is_same(const struct inject_thread *thread, uint32_t tgid)
{
	struct inject_thread now = {0};

	return !read_call(&now, tgid, thread->tid) && now.nr == thread->nr &&
	       now.sp == thread->sp && now.pc == thread->pc &&
	       !memcmp(now.args, thread->args, sizeof(now.args));
}

/* Field 3 and 41 of stat: whether it sleeps, and may be made the parent of another thread. */
static bool is_at_rest(uint32_t tgid, uint32_t tid)
{
	char line[1024], *field;
	unsigned int policy;

	if (read_text(tgid, tid, "stat", line, sizeof(line)))
		return false;
	field = strrchr(line, ')'); /* the name before it may hold anything */
	if (!field || strncmp(field, ") S ", 4))
		return false;
	field += 2;
	for (int number = 3; number < 41 && field; number++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	if (!field || sscanf(field, "%u", &policy) != 1)
		return false;
	return policy != POLICY_FIFO && policy != POLICY_RR && policy != POLICY_DEADLINE;
}

/* A number behind such a key, which is at the start of a line: the name cannot have one in it. */
static uint64_t find_number(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* False if the thread is gone, or may make no call at all but four. */
static bool read_status(struct candidate *candidate, uint32_t tgid)
{
	char text[STATUS_BYTES];
	uint64_t mode;

	if (read_text(tgid, candidate->thread.tid, "status", text, sizeof(text)))
		return false;
	mode = find_number(text, "\nSeccomp:");
	candidate->filters = (uint32_t)find_number(text, "\nSeccomp_filters:");
	candidate->sleeps = find_number(text, "\nvoluntary_ctxt_switches:");
	candidate->thread.filtered = mode != 0;
	return mode != SECCOMP_STRICT;
}

/* Where the kernel has mapped ld.so; where that is what was called, its own headers. 0: unknown. */
static uint64_t find_loader(uint32_t tgid, uint32_t tid)
{
	Elf64_auxv_t entries[64];
	uint64_t base = 0, headers = 0;
	char path[64];
	ssize_t size;
	int fd;

	format_path(path, tgid, tid, "auxv");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, entries, sizeof(entries));
	close(fd);
	for (size_t i = 0; size > 0 && i < (size_t)size / sizeof(*entries); i++) {
		if (entries[i].a_type == AT_BASE)
			base = entries[i].a_un.a_val;
		if (entries[i].a_type == AT_PHDR)
			headers = entries[i].a_un.a_val;
	}
	return base ? base : headers & ~4095ull;
}

/* From the headers in its memory: maps has thousands of lines in a process that uses CUDA. */
static bool read_loader(struct range *loader, uint32_t tgid, uint32_t tid)
{
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr header;
	char path[64];
	bool known = false;
	size_t size;
	int fd;

	loader->start = loader->end = find_loader(tgid, tid);
	if (!loader->start)
		return false;
	format_path(path, tgid, tid, "mem");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &header, sizeof(header), (off_t)loader->start) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phnum > HEADERS_MAX ||
	    header.e_phentsize != sizeof(*headers))
		goto out;
	size = header.e_phnum * sizeof(*headers);
	if (pread(fd, headers, size, (off_t)(loader->start + header.e_phoff)) != (ssize_t)size)
		goto out;
	for (size_t i = 0; i < header.e_phnum; i++) {
		uint64_t end = loader->start + headers[i].p_vaddr + headers[i].p_memsz;

		if (headers[i].p_type == PT_LOAD && end > loader->end)
			loader->end = end;
	}
	known = loader->end > loader->start;
out:
	close(fd);
	return known;
}

static bool is_within(uint64_t address, const struct range *range)
{
	return address >= range->start && address < range->end;
}

/* 0, whether it may be taken or not; -errno if no thread of this process can be looked at. */
static int look_at_thread(struct look *look, uint32_t tid)
{
	struct candidate candidate = {.thread = {.tid = tid}, .first = tid == look->tgid};
	struct inject_thread *thread = &candidate.thread;
	int err = read_call(thread, look->tgid, tid);

	if (err)
		return err == -EPERM ? err : 0;
	thread->rank = inject_file_rank(look->tgid, tid, thread->nr, thread->args);
	if (thread->rank == INJECT_RANK_NONE || is_within(thread->pc, &look->stub))
		return 0;
	if (!look->loader_known)
		look->loader_known = read_loader(&look->loader, look->tgid, tid);
	if (!look->loader_known || is_within(thread->pc, &look->loader) ||
	    !is_at_rest(look->tgid, tid) || !read_status(&candidate, look->tgid))
		return 0;
	return vec_push(&look->found, candidate);
}

/*
 * To be stopped there makes the kernel do a call, restart_syscall, that the filter may not know of;
 * it can be read no sooner. One that has been stopped before has shown what becomes of it.
 */
static bool is_risky(const struct inject_thread *thread)
{
	return thread->filtered && thread->rank == INJECT_RANK_BLOCK &&
	       thread->nr != SYS_restart_syscall;
}

static int compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (is_risky(&a->thread) != is_risky(&b->thread))
		return is_risky(&a->thread) ? 1 : -1;
	if (a->thread.rank != b->thread.rank)
		return a->thread.rank < b->thread.rank ? -1 : 1;
	/* The helper inherits them. */
	if (a->filters != b->filters)
		return a->filters < b->filters ? -1 : 1;
	/* Often the one that makes the steps. */
	if (a->first != b->first)
		return a->first ? 1 : -1;
	/*
	 * One that seldom wakes up is likely to be still there when it is stopped, and it is
	 * nobody's busiest. The count costs nothing, it stands in the file that tells of the
	 * filters, and does not change while the thread waits: the same one is the best the next
	 * time too.
	 */
	if (a->sleeps != b->sleeps)
		return a->sleeps < b->sleeps ? -1 : 1;
	return a->thread.tid < b->thread.tid ? -1 : a->thread.tid > b->thread.tid;
}

/* Another thread to begin at each time, where they are too many: its place in the folder. */
static long choose_start(DIR *folder)
{
	struct timespec now;
	struct stat status;

	/* A folder for each thread, "." and "..". */
	if (fstat(dirfd(folder), &status) || status.st_nlink <= INJECT_THREADS_LOOKED + 2)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long)((uint64_t)now.tv_nsec / 1000 % (status.st_nlink - 2)) + 2;
}

static int look_at_threads(struct look *look, DIR *folder)
{
	long start = choose_start(folder);
	bool wrapped = !start;
	struct dirent *entry;
	uint32_t looked = 0;
	int err = 0;

	if (start)
		seekdir(folder, start);
	while (!err && looked < INJECT_THREADS_LOOKED) {
		entry = readdir(folder);
		if (!entry && wrapped)
			break;
		if (!entry) {
			rewinddir(folder);
			wrapped = true;
			continue;
		}
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		looked++;
		err = look_at_thread(look, (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	return err;
}

int inject_threads_list(inject_thread_vec *threads, uint32_t tgid, uint64_t stub,
			uint32_t stub_size)
{
	struct look look = {.tgid = tgid, .stub = {.start = stub, .end = stub + stub_size}};
	char path[32];
	DIR *folder;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	folder = opendir(path);
	if (!folder)
		return map_error(-errno);
	err = look_at_threads(&look, folder);
	closedir(folder);
	if (look.found.count)
		qsort(look.found.items, look.found.count, sizeof(*look.found.items), compare);
	threads->count = 0;
	vec_for_each (candidate, &look.found) {
		if (!err)
			err = vec_push(threads, candidate->thread);
	}
	vec_free(&look.found);
	return err;
}
