/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Things that are summed up for each step until its record comes. A table of records of one size,
 * each of which begins with a struct step_sum; the oldest gives way to a new one.
 */
#ifndef FBT_STREAM_STEP_SUMS_H
#define FBT_STREAM_STEP_SUMS_H

#include <stddef.h>
#include <stdint.h>

/* Which step a sum is of. */
struct step_sum {
	uint32_t tgid;
	uint32_t tid;
	uint64_t start_ns;
};

struct step_sums;

/* size: of a record, struct step_sum included; max: of records. NULL: no memory. */
struct step_sums *step_sums__new(size_t size, size_t max);
void step_sums__free(struct step_sums *sums);

/* The record of a step; a new one is all zero but for its key. NULL: no memory. */
void *step_sums__get(struct step_sums *sums, const struct step_sum *key);

/* The record of a thread's step that began at start_ns; NULL: there is none. */
void *step_sums__find(struct step_sums *sums, uint32_t tid, uint64_t start_ns);

/* Removes a record that get or find returned. Pointers to others are invalid then. */
void step_sums__drop(struct step_sums *sums, void *record);

#endif
