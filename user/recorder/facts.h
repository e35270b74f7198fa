/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a stream of records has said so far that later records refer to: the window, processes,
 * threads, step functions, files, code, GPUs, and totals. Of a fact that changes the latest record
 * is kept. With these records in front, the rest of the stream can be read without its begin.
 */
#ifndef FBT_RECORDER_FACTS_H
#define FBT_RECORDER_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"

struct facts;

/* Keeps at most that many bytes of records. NULL: -ENOMEM. */
struct facts *facts__new(size_t bytes_max);
void facts__free(struct facts *facts);

/* Whether a record of that type is a fact; the others are about one moment or one step. */
bool facts_is_type(uint32_t type);

/*
 * Takes a copy of a fact that decode_event() accepted. If there is no room, names of files,
 * threads, GPU work and, last, code are dropped, the oldest first, and counted. 0 or -ENOMEM, which
 * drops the fact.
 */
int facts__put(struct facts *facts, const struct fbt_header *record);

/* The fact that record would replace; NULL: there is none. */
const struct fbt_header *facts__find(const struct facts *facts, const struct fbt_header *record);

/* Forgets processes that had ended when this was called before, but not step functions and code. */
void facts__forget_ended(struct facts *facts);
void facts__clear(struct facts *facts);

/* The fact at index, in the order in which they came first; NULL after the last one. */
const struct fbt_header *facts__at(const struct facts *facts, size_t index);
size_t facts__bytes(const struct facts *facts);
uint64_t facts__dropped(const struct facts *facts);

#endif
