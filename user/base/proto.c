/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/proto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

#define VARINT_MAX 10

static unsigned char *reserve(struct proto *proto, size_t size)
{
	size_t capacity = proto->capacity ? proto->capacity : 256;
	unsigned char *data;

	if (proto->err)
		return NULL;
	while (capacity - proto->size < size)
		capacity *= 2;
	if (capacity > proto->capacity) {
		data = realloc(proto->data, capacity);
		if (!data) {
			proto->err = -ENOMEM;
			return NULL;
		}
		proto->data = data;
		proto->capacity = capacity;
	}
	return proto->data + proto->size;
}

static size_t varint(unsigned char to[VARINT_MAX], uint64_t value)
{
	size_t size = 0;

	while (value >= 0x80) {
		to[size++] = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	to[size++] = (unsigned char)value;
	return size;
}

static void put_varint(struct proto *proto, uint64_t value)
{
	unsigned char *to = reserve(proto, VARINT_MAX);

	if (to)
		proto->size += varint(to, value);
}

static void put_tag(struct proto *proto, uint32_t field, enum wire wire)
{
	put_varint(proto, (uint64_t)field << 3 | wire);
}

static void put_bytes(struct proto *proto, const void *data, size_t size)
{
	unsigned char *to = reserve(proto, size);

	if (!to)
		return;
	memcpy(to, data, size);
	proto->size += size;
}

void proto_uint(struct proto *proto, uint32_t field, uint64_t value)
{
	put_tag(proto, field, WIRE_VARINT);
	put_varint(proto, value);
}

void proto_int(struct proto *proto, uint32_t field, int64_t value)
{
	proto_uint(proto, field, (uint64_t)value);
}

void proto_fixed64(struct proto *proto, uint32_t field, uint64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	put_tag(proto, field, WIRE_FIXED64);
	put_bytes(proto, bytes, sizeof(bytes));
}

void proto_double(struct proto *proto, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	proto_fixed64(proto, field, bits);
}

void proto_string(struct proto *proto, uint32_t field, const char *text)
{
	size_t begun = proto_begin(proto, field);

	while (*text) {
		size_t bad = 1, length = utf8_length(text, &bad);

		if (length)
			put_bytes(proto, text, length);
		else
			put_bytes(proto, "\xef\xbf\xbd", 3);
		text += length ? length : bad;
	}
	proto_end(proto, begun);
}

void proto_message(struct proto *proto, uint32_t field, const void *data, size_t size)
{
	put_tag(proto, field, WIRE_BYTES);
	put_varint(proto, size);
	put_bytes(proto, data, size);
}

size_t proto_begin(struct proto *proto, uint32_t field)
{
	put_tag(proto, field, WIRE_BYTES);
	return proto->size;
}

/* The length goes in front of what was written. */
void proto_end(struct proto *proto, size_t begun)
{
	unsigned char length[VARINT_MAX];
	size_t size, bytes;

	if (proto->err)
		return;
	size = proto->size - begun;
	bytes = varint(length, size);
	if (!reserve(proto, bytes))
		return;
	memmove(proto->data + begun + bytes, proto->data + begun, size);
	memcpy(proto->data + begun, length, bytes);
	proto->size += bytes;
}

void proto_reset(struct proto *proto)
{
	proto->size = 0;
}

void proto_free(struct proto *proto)
{
	free(proto->data);
	*proto = (struct proto){0};
}
