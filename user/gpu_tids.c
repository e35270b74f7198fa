/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_tids.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tid_map.h"

#define SCAN_NS 100000000ull
/* Looking for a thread that never comes gets as rare as this. */
#define SCAN_NS_MAX 3200000000ull

struct gpu_tids {
	uint32_t tgid;
	bool known;    /* whether the next is */
	bool same;     /* numbers are the same in both namespaces */
	bool scanned;  /* once at least */
	uint64_t next; /* when threads may be looked at again */
	uint64_t pause_ns;
	struct tid_map *map; /* inner number to the outer one, as a pointer */
};

struct gpu_tids *gpu_tids__new(uint32_t tgid)
{
	struct gpu_tids *tids = calloc(1, sizeof(*tids));

	if (!tids)
		return NULL;
	tids->tgid = tgid;
	tids->pause_ns = SCAN_NS;
	tids->map = tid_map__new();
	if (!tids->map) {
		free(tids);
		return NULL;
	}
	return tids;
}

void gpu_tids__free(struct gpu_tids *tids)
{
	if (!tids)
		return;
	tid_map__free(tids->map);
	free(tids);
}

bool gpu_tids_parse(const char *line, uint32_t *outer, uint32_t *inner, uint32_t *depth)
{
	uint32_t number = 0;
	int length = 0;

	*depth = 0;
	if (strncmp(line, "NSpid:", strlen("NSpid:")))
		return false;
	line += strlen("NSpid:");
	while (sscanf(line, "%" SCNu32 "%n", &number, &length) == 1) {
		if (!*depth)
			*outer = number;
		*inner = number;
		++*depth;
		line += length;
	}
	return *depth && *outer && *inner;
}

/* The numbers of a thread; false if it is gone. */
static bool read_thread(const struct gpu_tids *tids, uint32_t tid, uint32_t *outer, uint32_t *inner,
			uint32_t *depth)
{
	char path[64], line[512];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", tids->tgid, tid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = gpu_tids_parse(line, outer, inner, depth);
	if (file)
		fclose(file);
	return found;
}

/* 0: what there is of it is a parent's, and nothing of it is known. */
static void look_at_namespace(struct gpu_tids *tids)
{
	uint32_t outer, inner, depth;
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", tids->tgid);
	if (!stat("/proc/self/ns/pid", &ours) && !stat(path, &theirs)) {
		tids->known = true;
		tids->same = ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
	} else if (read_thread(tids, tids->tgid, &outer, &inner, &depth)) {
		tids->known = true;
		tids->same = depth == 1;
	}
}

static void scan(struct gpu_tids *tids)
{
	uint32_t tid, outer, inner, depth;
	struct dirent *entry;
	char path[32];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%u/task", tids->tgid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		if (read_thread(tids, tid, &outer, &inner, &depth))
			tid_map__set(tids->map, inner, (void *)(uintptr_t)outer);
	}
	if (folder)
		closedir(folder);
}

uint32_t gpu_tids__find(struct gpu_tids *tids, uint32_t inner_tid, uint64_t now_ns)
{
	uint32_t outer;

	if (!inner_tid)
		return 0;
	if (!tids->known)
		look_at_namespace(tids);
	if (tids->known && tids->same)
		return inner_tid;
	outer = (uint32_t)(uintptr_t)tid_map__get(tids->map, inner_tid);
	if (outer || (tids->scanned && now_ns < tids->next))
		return outer;
	scan(tids);
	tids->scanned = true;
	outer = (uint32_t)(uintptr_t)tid_map__get(tids->map, inner_tid);
	/* A thread that has ended never comes: each look at a thousand others takes its time. */
	if (outer)
		tids->pause_ns = SCAN_NS;
	else if (tids->pause_ns < SCAN_NS_MAX)
		tids->pause_ns *= 2;
	tids->next = now_ns + tids->pause_ns;
	return outer;
}
