/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A record_output that keeps what it is given. Include after cmocka.h. */
#ifndef FBT_RECORD_KEEPER_H
#define FBT_RECORD_KEEPER_H

#include <string.h>
#include "model/event.h"

struct record_keeper {
	_Alignas(8) char bytes[1 << 17];
	size_t size;
	size_t count;
	size_t at[256]; /* where each record begins */
};

static inline void keep_record(void *ctx, const void *data, size_t size)
{
	struct record_keeper *keeper = ctx;

	assert_true(keeper->size + size <= sizeof(keeper->bytes));
	assert_true(keeper->count < sizeof(keeper->at) / sizeof(keeper->at[0]));
	memcpy(keeper->bytes + keeper->size, data, size);
	keeper->at[keeper->count++] = keeper->size;
	keeper->size += size;
}

static inline struct record_output keeper_output(struct record_keeper *keeper)
{
	return (struct record_output){.emit = keep_record, .ctx = keeper};
}

/* The index-th record, which must be of that type. */
static inline const void *kept(const struct record_keeper *keeper, size_t index,
			       enum fbt_event_type type)
{
	const struct fbt_header *header;

	assert_true(index < keeper->count);
	header = (const struct fbt_header *)(keeper->bytes + keeper->at[index]);
	assert_int_equal(header->type, type);
	return header;
}

/* The index-th string after a record of bytes. */
static inline const char *kept_string(const void *record, size_t bytes, int index)
{
	const char *string = (const char *)record + bytes;

	while (index--)
		string += strlen(string) + 1;
	return string;
}

#endif
