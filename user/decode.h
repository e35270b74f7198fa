/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Untrusted bytes to checked records. Pure: no allocation, no logging. */
#ifndef FBT_DECODE_H
#define FBT_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"

/* Bytes. Longer records are impossible: the longest string in one is a command line. */
#define DECODE_RECORD_MAX (1u << 20)

/*
 * The record at data, of which size bytes are there. On success sets *event and returns its size in
 * bytes. -EAGAIN: cut off, more bytes are needed; -EBADMSG: header or contents are impossible;
 * -EOPNOTSUPP: sound, but of a type this version does not know: skip header.size bytes.
 * All fields that index an array (kind, nr, cause, category) and string counts are checked; data
 * must be 8-byte aligned.
 *
 * After an error *event is the record to skip, of (*event)->size bytes, or NULL if its end is not
 * known: the header is impossible or the record is cut off.
 */
long decode_event(const void *data, size_t size, const struct fbt_header **event);

/* The process a record is of; 0: of none. Only of a record that decode_event took. */
uint32_t decode_tgid(const struct fbt_header *event);

/* The index-th string behind the record's struct, or NULL. Only of a record that decode_event took.
 */
const char *decode_string(const struct fbt_header *event, unsigned int index);

#endif
