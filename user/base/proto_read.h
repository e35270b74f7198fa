/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads messages in the wire format of Protocol Buffers from memory, field by field. The bytes may
 * be anything.
 *
 *	struct proto_reader reader = {data, data + size};
 *	while (proto_next(&reader, &field))
 *		switch (field.number) …
 *	if (reader.bad) …
 */
#ifndef FBT_BASE_PROTO_READ_H
#define FBT_BASE_PROTO_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proto_reader {
	const unsigned char *at;
	const unsigned char *end;
	bool bad; /* what follows is no field */
};

struct proto_field {
	uint32_t number;
	uint64_t value;		   /* of a number; of 8 and 4 bytes as they are */
	const unsigned char *data; /* of bytes, a text or a message; NULL: it is a number */
	size_t size;
};

/* false: at the end, or bad is set. Groups, which nobody uses any more, are bad. */
bool proto_next(struct proto_reader *reader, struct proto_field *field);

/* The fields of a message inside. */
struct proto_reader proto_inner(const struct proto_field *field);

#endif
