/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * From CUPTI's records to frames of the ring. Used under the writer lock; calls nothing of CUPTI's,
 * so that no lock of CUPTI's is ever waited for while ours is held.
 */
#ifndef FERRUM_RECORD_COPY_H
#define FERRUM_RECORD_COPY_H

#include "api_table.h"
#include "name_table.h"
#include "shim_ring.h"

/* Since arming. */
struct record_counts {
	uint64_t records; /* in the ring */
	uint64_t lost;	  /* no room in the ring */
	uint64_t unknown; /* kinds or sizes that are not read */
};

struct record_copy {
	struct shim_ring *ring;
	struct name_table *names;
	const struct api_table *apis;
	const uint32_t *strides; /* by kind, see cupti_library */
	bool overhead_threads;	 /* overhead records have system thread ids: from 12.5 on */
	struct record_counts counts;
};

/* Puts the frame of a record, and before it that of its name. It is not yet published. */
void record_copy__put(struct record_copy *copy, const void *record);

/* Start of a record that CUPTI stamps itself, when a call is made; 0: it has none, or is another.
 */
uint64_t record_host_time(const void *record);

/*
 * Memory that came with a record and is the client's to free(); NULL: none. stride: of its kind.
 */
void *record_owned_data(const void *record, uint32_t stride);

#endif
