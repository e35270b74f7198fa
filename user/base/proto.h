/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Writes messages in the wire format of Protocol Buffers
 * (https://protobuf.dev/programming-guides/encoding/) into memory. {0} is empty.
 *
 *	struct proto proto = {0};
 *	size_t event = proto_begin(&proto, 11);
 *	proto_uint(&proto, 9, 1);
 *	proto_end(&proto, event);
 *	...
 *	proto_free(&proto);
 *
 * Out of memory, err is -ENOMEM and nothing more is written.
 */
#ifndef FBT_BASE_PROTO_H
#define FBT_BASE_PROTO_H

#include <stddef.h>
#include <stdint.h>

struct proto {
	unsigned char *data;
	size_t size;
	size_t capacity;
	int err;
};

/* field is the number of the field. uint is also for bool, enum and positive int32 and int64. */
void proto_uint(struct proto *proto, uint32_t field, uint64_t value);
void proto_int(struct proto *proto, uint32_t field, int64_t value);
void proto_fixed64(struct proto *proto, uint32_t field, uint64_t value);
void proto_double(struct proto *proto, uint32_t field, double value);

/* Bytes that are not UTF-8 become U+FFFD. */
void proto_string(struct proto *proto, uint32_t field, const char *text);

/* size bytes of a message that is ready. */
void proto_message(struct proto *proto, uint32_t field, const void *data, size_t size);

/* A message inside: what is written until proto_end with the value that was returned. */
size_t proto_begin(struct proto *proto, uint32_t field);
void proto_end(struct proto *proto, size_t begun);

/* Forgets what was written, and keeps the memory and err. */
void proto_reset(struct proto *proto);
void proto_free(struct proto *proto);

#endif
