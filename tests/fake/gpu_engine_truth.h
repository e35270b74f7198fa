/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The GPU engine's own account: a mapped file of fixed entries, so that it is there however the
 * engine ends, and writing to it needs no call. tests/live/gpu_truth.py reads it.
 */
#ifndef FBT_TESTS_GPU_ENGINE_TRUTH_H
#define FBT_TESTS_GPU_ENGINE_TRUTH_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fake_cuda.h"

#define TRUTH_MAGIC   0x4854555254555047ull /* "GPUTRUTH" */
#define TRUTH_ENTRIES (1u << 20)

enum truth_type {
	TRUTH_STEP = 1, /* a call of gpu_engine_step, from begin to end */
	TRUTH_CALL = 2,
	TRUTH_WORK = 3,
	TRUTH_SYNC = 4, /* a wait; start_ns is the end of the last work that it waited for */
	TRUTH_FULL = 5,
};

struct truth_entry {
	uint32_t type; /* enum truth_type, stored last */
	uint32_t tid;  /* as the engine knows it */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t call_start_ns; /* of the engine's call; also for the call inside */
	uint64_t call_end_ns;
	uint32_t correlation;
	uint32_t fate; /* enum fake_fate; for calls, 1 if there is a record */
	uint32_t domain;
	uint32_t cbid;
	uint32_t kind; /* enum fake_work_kind, or enum fake_scope */
	uint32_t device;
	uint32_t stream;
	uint32_t copy_kind;
	uint64_t bytes;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t name; /* index in the engine's table */
	uint32_t source_memory;
	uint32_t target_memory;
	uint64_t launch; /* all entries of one call have the same number */
	uint64_t step;	 /* of the thread; 0: outside of steps */
};

_Static_assert(sizeof(struct truth_entry) == 120, "gpu_truth.py knows it");

struct truth {
	uint64_t magic;
	uint64_t count;
	uint64_t pid;
	uint64_t launches;
	uint64_t pad[12];
	struct truth_entry entries[TRUTH_ENTRIES];
};

/* NULL: it cannot be created. */
static inline struct truth *truth_map(const char *path)
{
	int fd = open(path ? path : "/dev/zero", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct truth *truth;

	if (fd < 0 || (path && (ftruncate(fd, 0) < 0 || ftruncate(fd, sizeof(*truth)) < 0)))
		return NULL;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE,
		     (path ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE, fd, 0);
	close(fd);
	if (truth == MAP_FAILED)
		return NULL;
	truth->pid = (uint64_t)getpid();
	truth->magic = TRUTH_MAGIC;
	return truth;
}

/* Entries that do not fit are dropped; the file's count includes them. */
static inline void truth_add(struct truth *truth, const struct truth_entry *entry)
{
	uint64_t index = __atomic_fetch_add(&truth->count, 1, __ATOMIC_RELAXED);
	struct truth_entry *place = &truth->entries[index];

	if (index >= TRUTH_ENTRIES)
		return;
	memcpy((char *)place + sizeof(place->type), (const char *)entry + sizeof(entry->type),
	       sizeof(*entry) - sizeof(entry->type));
	__atomic_store_n(&place->type, entry->type, __ATOMIC_RELEASE);
}

static inline void truth_add_calls(struct truth *truth, const struct truth_entry *base,
				   const struct fake_call calls[2])
{
	for (int i = 0; i < 2 && calls[i].start_ns; i++) {
		struct truth_entry entry = *base;

		entry.type = TRUTH_CALL;
		entry.start_ns = calls[i].start_ns;
		entry.end_ns = calls[i].end_ns;
		entry.call_start_ns = calls[0].start_ns;
		entry.call_end_ns = calls[0].end_ns;
		entry.correlation = calls[i].correlation;
		entry.fate = calls[i].recorded;
		entry.domain = calls[i].domain;
		entry.cbid = calls[i].cbid;
		truth_add(truth, &entry);
	}
}

static inline void truth_add_work(struct truth *truth, const struct truth_entry *base,
				  const struct fake_work *work, const struct fake_call *call)
{
	struct truth_entry entry = *base;

	entry.type = TRUTH_WORK;
	entry.start_ns = work->start_ns;
	entry.end_ns = work->end_ns;
	entry.call_start_ns = call->start_ns;
	entry.call_end_ns = call->end_ns;
	entry.correlation = work->correlation;
	entry.fate = work->fate;
	entry.domain = call->domain;
	entry.cbid = call->cbid;
	entry.kind = work->kind;
	entry.device = work->device;
	entry.stream = work->stream;
	entry.copy_kind = work->copy_kind;
	entry.bytes = work->bytes;
	entry.graph_node = work->graph_node;
	entry.graph = work->graph;
	entry.source_memory = work->source_memory;
	entry.target_memory = work->target_memory;
	truth_add(truth, &entry);
}

#endif
