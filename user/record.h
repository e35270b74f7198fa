/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Makes the records of fbt_event.h that carry strings, and sends all of them one way. */
#ifndef FBT_RECORD_H
#define FBT_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"

/* Takes one whole record; the bytes are the sender's. */
struct record_output {
	void (*emit)(void *ctx, const void *data, size_t size);
	void *ctx;
};

/* Sends a record without strings: fills header.type and header.size; header.flags are the caller's.
 */
void record_send(const struct record_output *output, void *record, size_t size,
		 enum fbt_event_type type);

/*
 * Sends a record with count strings behind it; NULL is the empty string, and more than 4096 bytes
 * of one are cut off. 0 or -ENOMEM.
 */
int record_send_strings(const struct record_output *output, void *record, size_t size,
			enum fbt_event_type type, const char *const *strings, size_t count);

/* The user asks for the next step that ends to be escalated. */
void record_send_manual(const struct record_output *output, uint64_t time_ns);

/* The first record: tag, and this program's version, kernel and host. 0 or -ENOMEM. */
int record_send_window(const struct record_output *output, struct fbt_window *window,
		       const char *tag);

/* comm, exe and command line of a process, from /proc; what cannot be read is empty. 0 or -ENOMEM.
 */
int record_send_target(const struct record_output *output, uint32_t tgid, uint32_t parent_tgid,
		       uint64_t start_ns);

/* The name of a thread, from /proc; nothing is sent if it is gone. */
void record_send_thread(const struct record_output *output, uint32_t tgid, uint32_t tid);

#endif
