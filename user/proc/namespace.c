/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/namespace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/id_map.h"
#include "proc/process.h"
#include "proc/status.h"

/* Older kernels write the number of the clock instead of its name. */
#define CLOCK_NUMBER "1"

#define SCAN_NS (100 * NS_PER_MS)
/* While a thread is not found, the pause between two scans doubles up to this. */
#define SCAN_NS_MAX (3200 * NS_PER_MS)
#define STALE_NS    (10 * NS_PER_S)

bool time_namespace_parse(const char *line, int64_t *offset_ns)
{
	int64_t seconds, ns;

	if (sscanf(line, " monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) != 2 &&
	    sscanf(line, " " CLOCK_NUMBER " %" SCNd64 " %" SCNd64, &seconds, &ns) != 2)
		return false;
	if (ns < 0 || (uint64_t)ns >= NS_PER_S)
		return false;
	return !__builtin_mul_overflow(seconds, (int64_t)NS_PER_S, offset_ns) &&
	       !__builtin_add_overflow(*offset_ns, ns, offset_ns);
}

int namespace_is_ours(struct proc_ref ref, const char *kind)
{
	char path[PROC_PATH_MAX], name[32];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (stat(path, &ours))
		return -errno;
	snprintf(name, sizeof(name), "ns/%s", kind);
	proc_path(path, ref, name);
	if (stat(path, &theirs))
		return -errno;
	return ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

int64_t time_namespace_offset(uint32_t tgid)
{
	const struct proc_ref process = {.tgid = tgid};
	int64_t offset_ns = 0;
	char line[128];
	FILE *file;

	/* The file describes the namespace of the children, which usually is also the process's. */
	if (namespace_is_ours(process, "time") != 0)
		return 0;
	file = proc_fopen(process, "timens_offsets");
	while (file && fgets(line, sizeof(line), file)) {
		if (time_namespace_parse(line, &offset_ns))
			break;
	}
	if (file)
		fclose(file);
	return offset_ns;
}

struct ns_tids {
	uint32_t tgid;
	bool known; /* whether same is known */
	bool same;  /* process and tool are in one namespace */
	bool scanned;
	uint64_t next_ns;  /* earliest time of the next scan for a thread that is not known */
	uint64_t stale_ns; /* from then on a known one may be another thread by now */
	uint64_t pause_ns;
	struct tid_map *map; /* inner thread ID to the outer one, as a pointer */
};

struct ns_tids *ns_tids__new(uint32_t tgid)
{
	struct ns_tids *tids = calloc(1, sizeof(*tids));

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

void ns_tids__free(struct ns_tids *tids)
{
	if (!tids)
		return;
	tid_map__free(tids->map);
	free(tids);
}

static void look_at_namespace(struct ns_tids *tids)
{
	const struct proc_ref process = {.tgid = tids->tgid};
	struct thread_status status;
	int is_ours = namespace_is_ours(process, "pid");

	if (is_ours >= 0) {
		tids->known = true;
		tids->same = is_ours;
	} else if (!thread_status_read(&status, process) && status.ns_depth) {
		tids->known = true;
		tids->same = status.ns_depth == 1;
	}
}

static void scan(struct ns_tids *tids)
{
	struct thread_status status;
	pid_vec threads = {0};

	threads_list(tids->tgid, &threads);
	vec_for_each (tid, &threads) {
		if (!thread_status_read(&status, (struct proc_ref){tids->tgid, *tid}) &&
		    status.ns_depth)
			tid_map__set(tids->map, status.ns_tid, (void *)(uintptr_t)*tid);
	}
	vec_free(&threads);
}

uint32_t ns_tids__find(struct ns_tids *tids, uint32_t inner_tid, uint64_t now_ns)
{
	uint32_t outer;

	if (!inner_tid)
		return 0;
	if (!tids->known)
		look_at_namespace(tids);
	if (tids->known && tids->same)
		return inner_tid;
	outer = (uint32_t)(uintptr_t)tid_map__get(tids->map, inner_tid);
	if (tids->scanned && now_ns < (outer ? tids->stale_ns : tids->next_ns))
		return outer;
	scan(tids);
	tids->scanned = true;
	tids->stale_ns = now_ns + STALE_NS;
	outer = (uint32_t)(uintptr_t)tid_map__get(tids->map, inner_tid);
	/* A thread that has ended is never found, and a scan of thousands of threads is slow. */
	if (outer)
		tids->pause_ns = SCAN_NS;
	else if (tids->pause_ns < SCAN_NS_MAX)
		tids->pause_ns *= 2;
	tids->next_ns = now_ns + tids->pause_ns;
	return outer;
}
