/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Steps that are slow because of a limit of the engine's cgroup. The engine itself sets the limit
 * for the due steps, on the cgroup above its own. The kernel's counter of that cgroup is the truth:
 * a due step in which the counter did not change was not slow.
 */
#ifndef FBT_TESTS_JUDGE_LIMITS_H
#define FBT_TESTS_JUDGE_LIMITS_H

#include "anomalies.h"

enum { LIMIT_BYTES = 32 << 20 };

static inline int open_in_cgroup(const struct engine *e, const char *name, int flags)
{
	int folder = open(e->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC), file;

	must(folder >= 0, e->cgroup);
	file = openat(folder, name, flags | O_CLOEXEC);
	close(folder);
	return file;
}

/* The number after a name in a file of the cgroup, or the first one if name is "". */
static inline uint64_t read_counter(const struct engine *e, const char *name)
{
	char text[4096];
	ssize_t size = pread(e->counters, text, sizeof(text) - 1, 0);
	const char *at;

	must(size > 0, "pread");
	text[size] = '\0';
	at = strstr(text, name);
	must(at != NULL, name);
	return strtoull(at + strlen(name), NULL, 10);
}

static inline void set_limit(const struct engine *e, const char *text)
{
	must(pwrite(e->limit, text, strlen(text), 0) == (ssize_t)strlen(text), text);
}

static inline void open_cpu_limit(struct engine *e)
{
	e->limit = open_in_cgroup(e, "cpu.max", O_WRONLY);
	e->is_v2 = e->limit >= 0;
	if (!e->is_v2)
		e->limit = open_in_cgroup(e, "cpu.cfs_quota_us", O_WRONLY);
	e->counters = open_in_cgroup(e, "cpu.stat", O_RDONLY);
	must(e->limit >= 0 && e->counters >= 0, e->cgroup);
}

/* In each period less than the work of one step, and less than the tick by which it is held. */
static inline void limit_cpu(struct engine *e)
{
	set_limit(e, e->is_v2 ? "1000 100000" : "1000");
}

static inline void free_cpu(struct engine *e)
{
	set_limit(e, e->is_v2 ? "max 100000" : "-1");
}

static inline uint64_t throttled_ns(const struct engine *e)
{
	if (e->is_v2)
		return read_counter(e, "throttled_usec ") * US;
	return read_counter(e, "throttled_time ");
}

static inline void open_memory_limit(struct engine *e)
{
	map_weights(e);
	e->limit = open_in_cgroup(e, "memory.max", O_WRONLY);
	e->is_v2 = e->limit >= 0;
	if (!e->is_v2)
		e->limit = open_in_cgroup(e, "memory.limit_in_bytes", O_WRONLY);
	e->counters = open_in_cgroup(e, e->is_v2 ? "memory.events" : "memory.failcnt", O_RDONLY);
	must(e->limit >= 0 && e->counters >= 0, e->cgroup);
	read_weights(e, false);
}

/* A worker reads them: the step's own thread has no page fault. */
static inline void open_memory_limit_of_worker(struct engine *e)
{
	open_memory_limit(e);
	start_helper(e);
}

/* Half of the weights are thrown out, and from then on each half drives the other out. */
static inline void limit_memory(struct engine *e)
{
	char text[24];

	snprintf(text, sizeof(text), "%d", LIMIT_BYTES);
	set_limit(e, text);
}

static inline void free_memory(struct engine *e)
{
	set_limit(e, e->is_v2 ? "max" : "-1");
	read_weights(e, false);
}

static inline uint64_t memory_hits(const struct engine *e)
{
	return read_counter(e, e->is_v2 ? "max " : "");
}

#endif
