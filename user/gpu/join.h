/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The GPU records of one process, and which API call launched which work.
 *
 * Records come in any order, and a hostile process may have made them up: no order, no times and no
 * correlation ids make this slow or large.
 *
 * CUPTI's correlation ids wrap around. Work belongs to the latest call of its id that began before
 * the work did, judged by the records that are there when gpu_join__resolve is called. A driver
 * call inside a runtime call of the same id is nested: its work is the runtime call's. Work of a
 * CUDA graph belongs to no call that launches none.
 */
#ifndef FBT_GPU_JOIN_H
#define FBT_GPU_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "fbt_gpu.h"
#include "gpu/timeline.h"
#include "model/gpu.h"

enum join_kind { JOIN_WORK, JOIN_CALL, JOIN_SYNC, JOIN_OVERHEAD, JOIN_KINDS };

LIST_HEAD(join_list, join_record);

struct join_record {
	enum join_kind kind;
	uint64_t step; /* number of the step it was given to; 0: none */
	union {
		struct fbt_header header;
		struct { /* JOIN_WORK */
			struct fbt_gpu_work work;
			struct join_record *call; /* that launched it; NULL: not known (yet) */
			LIST_ENTRY(join_record) in_list;
		};
		struct { /* JOIN_CALL */
			struct fbt_gpu_api api;
			struct join_list works;	   /* empty if nested: the outer call has them */
			uint64_t works_end_ns;	   /* the latest end of its work */
			struct join_record *older; /* of the same correlation id */
			struct join_record *outer; /* of a nested call, while that is kept */
			uint32_t news;		   /* turn in which its latest work was found */
			bool has_work;		   /* stays set when that work was dropped */
			bool is_kept;		   /* false: dropped, but its work is still here */
		};
		struct fbt_gpu_sync sync;
		struct fbt_gpu_overhead overhead;
	};
};

/* Appends a copy of the record to the vector of its kind. 0 or -ENOMEM. */
int join_record_copy(const struct join_record *record, struct gpu_records *to);

/* A launch of a kernel, graph, copy or memset that did not fail: its work is still to come. */
bool join_call_is_launch(const struct join_record *call);

struct gpu_join;

/* NULL: -ENOMEM. */
struct gpu_join *gpu_join__new(void);
void gpu_join__free(struct gpu_join *join);

/* Adds a record of work, an API call, a sync or an overhead; updates counts. 0 or -ENOMEM. */
int gpu_join__add(struct gpu_join *join, const struct fbt_header *event, struct gpu_counts *counts);

/* A flush has come: all records up to time_ns are known. Begins a new turn. */
void gpu_join__flush(struct gpu_join *join, uint64_t time_ns);

/*
 * Finds the calls of the work that has come. epsilon_ns is the error of the clock. *late is set to
 * a call that was given to a step before this work of it came, or to NULL. 0 or -ENOMEM.
 */
int gpu_join__resolve(struct gpu_join *join, uint64_t epsilon_ns, struct gpu_counts *counts,
		      const struct join_record **late);

/* The call of a correlation id that was open at a time, or the last one before; NULL: unknown. */
const struct join_record *gpu_join__find_call(const struct gpu_join *join, uint32_t correlation,
					      uint64_t time_ns);

/* The records of a kind that overlap [from_ns, until_ns): entries are struct join_record. */
struct gpu_timeline_cursor gpu_join__overlapping(const struct gpu_join *join, enum join_kind kind,
						 uint64_t from_ns, uint64_t until_ns);

/* The next record of the cursor, NULL at the end. */
struct join_record *join_next(struct gpu_timeline_cursor *cursor);

/* Work of the call was found in the current turn. */
bool gpu_join__has_news(const struct gpu_join *join, const struct join_record *call);

/* A record that ended after a time was dropped, or found no memory. */
bool gpu_join__lost_since(const struct gpu_join *join, uint64_t time_ns);

size_t gpu_join__count(const struct gpu_join *join);

/*
 * Drops records from the front of each timeline that ended at or before until_ns; launches that
 * still wait for their work only if they ended at or before waiting_ns. Records that no step was
 * given go to left. Updates counts->outside. 0 or -ENOMEM: some are missing from left.
 */
int gpu_join__drop_until(struct gpu_join *join, uint64_t until_ns, uint64_t waiting_ns,
			 struct gpu_counts *counts, struct gpu_records *left);

/* Drops records, earliest start first, down to count; stops at one that ends after until_ns. */
int gpu_join__drop_to(struct gpu_join *join, size_t count, uint64_t until_ns,
		      struct gpu_counts *counts, struct gpu_records *left);

#endif
