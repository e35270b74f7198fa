/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/redact.h"
#include "base/vec.h"
#include "proc/status.h"

/* PID of kthreadd, a kernel thread and the parent of all others. */
#define KTHREADD 2

#define FIRST_READ (64u << 10)

typedef VEC(char *) string_vec;

int processes_ids(pid_vec *ids)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	int err = 0;

	if (!folder) {
		err = -errno;
		log_err("/proc: %s", strerror(-err));
		return err;
	}
	while (!err && (entry = readdir(folder))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			err = vec_push(ids, (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	closedir(folder);
	return err;
}

static int compare_tgids(const void *left, const void *right)
{
	const struct process_entry *a = left, *b = right;

	return (a->tgid > b->tgid) - (a->tgid < b->tgid);
}

bool process_entry_read(struct process_entry *process)
{
	struct thread_stat stat = {0};

	if (process->tgid == (uint32_t)getpid() || process->tgid == KTHREADD ||
	    thread_stat_read(&stat, (struct proc_ref){.tgid = process->tgid}) ||
	    stat.parent_tgid == KTHREADD)
		return false;
	process->parent_tgid = stat.parent_tgid;
	return true;
}

int processes_list(process_vec *processes)
{
	pid_vec ids = {0};
	int err = processes_ids(&ids);

	vec_for_each (id, &ids) {
		struct process_entry process = {.tgid = *id};

		if (err)
			break;
		if (process_entry_read(&process))
			err = vec_push(processes, process);
	}
	vec_free(&ids);
	vec_sort(processes, compare_tgids);
	return err;
}

uint32_t processes_last(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	unsigned int last = 0;

	if (file && fscanf(file, "%*f %*f %*f %*u/%*u %u", &last) != 1)
		last = 0;
	if (file)
		fclose(file);
	return last;
}

uint32_t processes_parent(const process_vec *processes, uint32_t tgid)
{
	size_t index = vec_lower_bound(processes, item->tgid, tgid);

	if (index < processes->count && processes->items[index].tgid == tgid)
		return processes->items[index].parent_tgid;
	return 0;
}

bool processes_descends(const process_vec *processes, uint32_t tgid, const uint32_t *roots,
			size_t root_count)
{
	/* The list is not a snapshot and may contain a loop, so the depth is limited. */
	for (size_t depth = 0; tgid && depth <= processes->count; depth++) {
		for (size_t i = 0; i < root_count; i++) {
			if (roots[i] == tgid)
				return true;
		}
		tgid = processes_parent(processes, tgid);
	}
	return false;
}

static bool has_ended(uint32_t tgid, uint32_t tid)
{
	struct thread_stat stat = {0};

	return thread_stat_read(&stat, (struct proc_ref){tgid, tid}) || stat.state == 'Z' ||
	       stat.state == 'X';
}

int threads_list(uint32_t tgid, pid_vec *threads)
{
	char path[PROC_PATH_MAX];
	struct dirent *entry;
	DIR *folder;
	int err = 0;

	proc_path(path, (struct proc_ref){.tgid = tgid}, "task");
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (entry = readdir(folder))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			err = vec_push(threads, (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	closedir(folder);
	return err;
}

static void add_children(struct proc_ref thread, pid_vec *children)
{
	char path[PROC_PATH_MAX];
	unsigned int child;
	FILE *file;

	proc_path(path, thread, "children");
	file = fopen(path, "re");
	while (file && fscanf(file, "%u", &child) == 1 && !vec_push(children, child))
		;
	if (file)
		fclose(file);
}

void processes_children(uint32_t tgid, pid_vec *children)
{
	pid_vec threads = {0};

	threads_list(tgid, &threads);
	vec_for_each (tid, &threads)
		add_children((struct proc_ref){tgid, *tid}, children);
	vec_free(&threads);
}

uint32_t processes_live_thread(uint32_t tgid)
{
	uint32_t found = tgid;
	pid_vec threads = {0};

	if (!has_ended(tgid, tgid))
		return tgid;
	threads_list(tgid, &threads);
	vec_for_each (tid, &threads) {
		if (found == tgid && !has_ended(tgid, *tid))
			found = *tid;
	}
	vec_free(&threads);
	return found;
}

struct proc_ref processes_ref(uint32_t tgid)
{
	return (struct proc_ref){tgid, processes_live_thread(tgid)};
}

uint32_t processes_count_threads(uint32_t tgid)
{
	unsigned int total = 0;
	pid_vec threads = {0};
	FILE *file;

	if (tgid) {
		threads_list(tgid, &threads);
		total = (unsigned int)threads.count;
		vec_free(&threads);
		return total;
	}
	file = fopen("/proc/loadavg", "re");
	if (file && fscanf(file, "%*f %*f %*f %*u/%u", &total) != 1)
		total = 0;
	if (file)
		fclose(file);
	return total;
}

void process_text_read(struct process_text *text, uint32_t tgid)
{
	const struct proc_ref process = {.tgid = tgid};
	char arguments[sizeof(text->cmdline)];
	size_t length = 0;
	FILE *file;

	proc_comm(process, text->comm, sizeof(text->comm));
	proc_readlink(process, "exe", text->exe, sizeof(text->exe));
	file = proc_fopen(process, "cmdline");
	if (file) {
		length = fread(arguments, 1, sizeof(arguments), file);
		fclose(file);
	}
	redact_arguments(arguments, length, length == sizeof(arguments), text->cmdline,
			 sizeof(text->cmdline));
}

int process_strings_split(struct process_strings *strings, char *text, size_t size)
{
	string_vec items = {0};
	char *at = text;
	int err = 0;

	text[size] = '\0';
	while (!err && at < text + size && items.count < PROCESS_STRINGS_MAX) {
		err = vec_push(&items, at);
		at += strlen(at) + 1;
	}
	if (!err)
		err = vec_push(&items, (char *)NULL);
	if (err) {
		vec_free(&items);
		free(text);
		memset(strings, 0, sizeof(*strings));
		return err;
	}
	strings->items = items.items;
	strings->count = items.count - 1;
	strings->text = text;
	return 0;
}

/* Reads up to PROCESS_STRINGS_BYTES_MAX bytes. *text has room for one byte more than *size. */
static int read_all(int fd, char **text, size_t *size)
{
	size_t capacity = FIRST_READ;
	ssize_t got = 1;

	*size = 0;
	*text = malloc(capacity + 1);
	if (!*text)
		return -ENOMEM;
	while (got > 0 && *size < PROCESS_STRINGS_BYTES_MAX) {
		if (*size == capacity) {
			char *moved = realloc(*text, 2 * capacity + 1);

			if (!moved)
				return -ENOMEM;
			*text = moved;
			capacity *= 2;
		}
		got = read(fd, *text + *size, capacity - *size);
		if (got < 0)
			return -errno;
		*size += (size_t)got;
	}
	return 0;
}

/* The size without the last string, which was cut off. */
static size_t drop_cut_string(const char *text, size_t size)
{
	const char *end = memrchr(text, '\0', size);

	return end ? (size_t)(end - text) + 1 : 0;
}

int process_strings_read(struct process_strings *strings, uint32_t tgid, const char *file)
{
	char *text = NULL;
	size_t size = 0;
	char path[PROC_PATH_MAX];
	int fd, err;

	memset(strings, 0, sizeof(*strings));
	/* Not always the first thread, which has no memory any more if it has ended. */
	proc_path(path, processes_ref(tgid), file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		log_debug("%s: %s", path, strerror(-err));
		return err;
	}
	err = read_all(fd, &text, &size);
	close(fd);
	if (err) {
		free(text);
		log_debug("%s: %s", path, strerror(-err));
		return err;
	}
	if (size == PROCESS_STRINGS_BYTES_MAX) {
		log_debug("%s: more than %u bytes: the rest is left out", path, (unsigned int)size);
		size = drop_cut_string(text, size);
	}
	return process_strings_split(strings, text, size);
}

void process_strings_clear(struct process_strings *strings)
{
	free(strings->items);
	free(strings->text);
	memset(strings, 0, sizeof(*strings));
}

struct pid_set {
	pid_vec pids;
	VEC(int) fds; /* their pidfds, in the same order; -1: pidfd_open failed */
};

static int open_process(uint32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	return fd < 0 ? -errno : fd;
}

static int add_process(struct pid_set *set, uint32_t pid)
{
	int fd = open_process(pid), err;

	if (fd == -ESRCH) {
		log_err("process %u: no such process", pid);
		return fd;
	}
	if (fd < 0) {
		log_debug("process %u: pidfd: %s", pid, strerror(-fd));
		fd = -1;
	}
	err = vec_push(&set->pids, pid);
	if (!err)
		err = vec_push(&set->fds, fd);
	if (err && fd >= 0)
		close(fd);
	return err;
}

int pid_set__new(struct pid_set **result, const pid_vec *pids)
{
	struct pid_set *set = calloc(1, sizeof(*set));
	int err = set ? 0 : -ENOMEM;

	vec_for_each (pid, pids) {
		if (!err)
			err = add_process(set, *pid);
	}
	if (err) {
		pid_set__free(set);
		set = NULL;
	}
	*result = set;
	return err;
}

void pid_set__free(struct pid_set *set)
{
	if (!set)
		return;
	vec_for_each (fd, &set->fds) {
		if (*fd >= 0)
			close(*fd);
	}
	vec_free(&set->fds);
	vec_free(&set->pids);
	free(set);
}

const pid_vec *pid_set__pids(const struct pid_set *set)
{
	return &set->pids;
}

/* Whether a process has ended; a zombie has. */
static bool is_gone(uint32_t pid, int fd)
{
	struct pollfd process = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return kill((pid_t)pid, 0) && errno == ESRCH;
	return poll(&process, 1, 0) > 0;
}

static void forget(struct pid_set *set, size_t index)
{
	size_t after = set->pids.count - index - 1;

	if (set->fds.items[index] >= 0)
		close(set->fds.items[index]);
	memmove(&set->fds.items[index], &set->fds.items[index + 1],
		after * sizeof(set->fds.items[0]));
	memmove(&set->pids.items[index], &set->pids.items[index + 1],
		after * sizeof(set->pids.items[0]));
	set->fds.count--;
	set->pids.count--;
}

size_t pid_set__look(struct pid_set *set)
{
	size_t i = 0;

	while (i < set->pids.count) {
		uint32_t pid = set->pids.items[i];

		if (!is_gone(pid, set->fds.items[i])) {
			i++;
			continue;
		}
		forget(set, i);
		if (set->pids.count)
			log_info("process %u has ended", pid);
	}
	return set->pids.count;
}
