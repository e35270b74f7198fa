/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Turns CUPTI's activity records into frames of the ring. Call with the writer lock held. Nothing
 * here calls CUPTI, so we never wait for a lock of CUPTI while we hold ours.
 */
#ifndef FERRUM_RECORDS_H
#define FERRUM_RECORDS_H

#include "api_table.h"
#include "name_table.h"
#include "shim_ring.h"

/* Counts since arming. */
struct record_counts {
	uint64_t records;  /* written to the ring */
	uint64_t lost;	   /* dropped: the ring was full */
	uint64_t unknown;  /* of an unknown kind, or too short */
	uint64_t canaries; /* calls of api_table's canary; not written to the ring */
	uint64_t kernels;
	uint64_t untimed; /* kernels without times */
};

struct record_writer {
	struct shim_ring *ring;
	struct name_table *names;
	const struct api_table *apis;
	const uint32_t *strides; /* by kind, see cupti_library */
	/* Overhead records have system thread ids, which they do from 12.5 on. */
	bool overhead_threads;
	struct record_counts counts;
};

/*
 * Puts a record's frame into the ring, and before it that of its name if the name is new. Does not
 * publish.
 */
void record_writer__put(struct record_writer *copy, const void *record);

/* The start of an API record, which CUPTI reads on the host; 0: another kind of record. */
uint64_t record_host_time(const void *record);

/*
 * Memory of the record that the client must free(); NULL: none. stride: that of the record's kind.
 */
void *record_owned_data(const void *record, uint32_t stride);

#endif
