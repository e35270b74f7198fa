/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "log.h"
#include "processes.h"

/* Parent of all kernel threads, and itself one. */
#define KTHREADD 2

int thread_stat_read(struct thread_stat *stat, uint32_t tgid, uint32_t tid)
{
	char path[64], line[512];
	const char *end;
	int err = -ESRCH;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", tgid, tid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	/* The name in field 2 may hold anything but ends with the last parenthesis. */
	if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')) &&
	    sscanf(end + 1,
		   " %c %u %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%" SCNu64,
		   &stat->state, &stat->parent_tgid, &stat->flags, &stat->start_ticks) == 4)
		err = 0;
	fclose(file);
	return err;
}

static bool has_ended(uint32_t tgid, uint32_t tid)
{
	struct thread_stat stat = {0};

	return thread_stat_read(&stat, tgid, tid) || stat.state == 'Z' || stat.state == 'X';
}

uint32_t processes_living_thread(uint32_t tgid)
{
	uint32_t found = tgid, tid;
	char path[32];
	struct dirent *entry;
	DIR *folder;

	if (!has_ended(tgid, tgid))
		return tgid;
	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	folder = opendir(path);
	while (folder && found == tgid && (entry = readdir(folder))) {
		if (sscanf(entry->d_name, "%u", &tid) == 1 && !has_ended(tgid, tid))
			found = tid;
	}
	if (folder)
		closedir(folder);
	return found;
}

int processes_list(process_vec *processes)
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
		struct process_entry process = {0};
		struct thread_stat stat = {0};

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    sscanf(entry->d_name, "%u", &process.tgid) != 1 ||
		    process.tgid == (uint32_t)getpid() || process.tgid == KTHREADD ||
		    thread_stat_read(&stat, process.tgid, process.tgid) ||
		    stat.parent_tgid == KTHREADD)
			continue;
		process.parent_tgid = stat.parent_tgid;
		err = vec_push(processes, process);
	}
	closedir(folder);
	return err;
}

static uint32_t parent_of(const process_vec *processes, uint32_t tgid)
{
	vec_for_each (process, processes) {
		if (process->tgid == tgid)
			return process->parent_tgid;
	}
	return 0;
}

bool processes_descends(const process_vec *processes, uint32_t tgid, const uint32_t *roots,
			size_t root_count)
{
	/* The list is no instant's picture: a bound keeps a loop in it from being endless. */
	for (size_t depth = 0; tgid && depth <= processes->count; depth++) {
		for (size_t i = 0; i < root_count; i++) {
			if (roots[i] == tgid)
				return true;
		}
		tgid = parent_of(processes, tgid);
	}
	return false;
}

uint32_t processes_count_threads(uint32_t tgid)
{
	unsigned int total = 0;
	struct dirent *entry;
	char path[32];
	DIR *folder;
	FILE *file;

	if (!tgid) {
		file = fopen("/proc/loadavg", "re");
		if (file && fscanf(file, "%*f %*f %*f %*u/%u", &total) != 1)
			total = 0;
		if (file)
			fclose(file);
		return total;
	}
	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		total += isdigit((unsigned char)entry->d_name[0]) != 0;
	if (folder)
		closedir(folder);
	return total;
}
