/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Decodes and encodes records (fbt_event.h). The decoder checks untrusted bytes; it neither
 * allocates nor logs.
 */
#ifndef FBT_MODEL_EVENT_H
#define FBT_MODEL_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"
#include "fbt_explain.h"
#include "fbt_look.h"
#include "proc/process.h"

/* The longest record in bytes; the longest string in any record is a command line. */
#define DECODE_RECORD_MAX (1u << 20)

/*
 * Checks the record at data, where size bytes are available; data must be 8-byte aligned. On
 * success sets *event and returns the size of the record in bytes. All fields that index an array
 * (kind, nr, cause, category) and the number of strings are checked then.
 *
 *	-EAGAIN		the record is cut off, more bytes are needed
 *	-EBADMSG	header or contents are invalid
 *	-EOPNOTSUPP	valid, but of a type that this version does not know
 *
 * After an error *event is the record to skip, of (*event)->size bytes, or NULL if its end is not
 * known, because its header is invalid or the record is cut off.
 */
long decode_event(const void *data, size_t size, const struct fbt_header **event);

/* The process that a record is about, 0 if none. decode_event() must have accepted the record. */
uint32_t decode_tgid(const struct fbt_header *event);

/* The index-th string of a record that decode_event() accepted, or NULL. */
const char *decode_string(const struct fbt_header *event, unsigned int index);

/* Receives records: emit is given one whole record, which is borrowed. */
struct record_output {
	void (*emit)(void *ctx, const void *data, size_t size);
	void *ctx;
};

/* Sends a record without strings. Sets header.type and header.size, but not header.flags. */
void record_send(const struct record_output *output, void *record, size_t size,
		 enum fbt_event_type type);

/*
 * Sends a record followed by count strings. A NULL string is sent as "", and a string longer than
 * 4096 bytes is cut off. 0 or -ENOMEM.
 */
int record_send_strings(const struct record_output *output, void *record, size_t size,
			enum fbt_event_type type, const char *const *strings, size_t count);

/* The user asks to escalate the next step that ends. */
void record_send_manual(const struct record_output *output, uint64_t time_ns);

/* The first record of a stream, with tag, tool version, kernel release and host. 0 or -ENOMEM. */
int record_send_window(const struct record_output *output, struct fbt_window *window,
		       const char *tag);

/* At most FBT_OPTIONS_MAX options, each as "NAME=VALUE". 0 or -ENOMEM. */
int record_send_options(const struct record_output *output, const char *const *texts, size_t count);

/* A traced process, with its names from /proc. 0 or -ENOMEM. */
int record_send_target(const struct record_output *output, uint32_t tgid, uint32_t parent_tgid,
		       uint64_t start_ns, const struct process_text *text);

/* The name of a thread, cut off after 15 bytes. */
void record_send_thread(const struct record_output *output, uint32_t tgid, uint32_t tid,
			const char *comm);

#endif
