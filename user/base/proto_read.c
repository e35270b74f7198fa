/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/proto_read.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define FIELD_MAX ((1u << 29) - 1)

static bool take_varint(struct proto_reader *reader, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
		unsigned char byte = *reader->at++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	reader->bad = true;
	return false;
}

static bool take_fixed(struct proto_reader *reader, size_t bytes, uint64_t *value)
{
	if ((size_t)(reader->end - reader->at) < bytes) {
		reader->bad = true;
		return false;
	}
	*value = 0;
	for (size_t i = 0; i < bytes; i++)
		*value |= (uint64_t)reader->at[i] << 8 * i;
	reader->at += bytes;
	return true;
}

static bool take_bytes(struct proto_reader *reader, struct proto_field *field)
{
	uint64_t size;

	if (!take_varint(reader, &size))
		return false;
	if (size > (uint64_t)(reader->end - reader->at)) {
		reader->bad = true;
		return false;
	}
	field->data = reader->at;
	field->size = (size_t)size;
	reader->at += size;
	return true;
}

bool proto_next(struct proto_reader *reader, struct proto_field *field)
{
	uint64_t tag;

	*field = (struct proto_field){.number = 0};
	if (reader->bad || reader->at == reader->end || !take_varint(reader, &tag))
		return false;
	reader->bad = !(tag >> 3) || tag >> 3 > FIELD_MAX;
	if (reader->bad)
		return false;
	field->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case WIRE_VARINT:
		return take_varint(reader, &field->value);
	case WIRE_FIXED64:
		return take_fixed(reader, 8, &field->value);
	case WIRE_FIXED32:
		return take_fixed(reader, 4, &field->value);
	case WIRE_BYTES:
		return take_bytes(reader, field);
	default:
		reader->bad = true;
		return false;
	}
}

struct proto_reader proto_inner(const struct proto_field *field)
{
	static const unsigned char nothing;

	if (!field->data)
		return (struct proto_reader){&nothing, &nothing, true};
	return (struct proto_reader){field->data, field->data + field->size, false};
}
