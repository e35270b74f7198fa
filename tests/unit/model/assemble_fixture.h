/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* An assembler whose receivers keep what they get. Include after cmocka.h. */
#ifndef FBT_ASSEMBLE_FIXTURE_H
#define FBT_ASSEMBLE_FIXTURE_H

#include <stdlib.h>
#include "model/assemble.h"
#include "model/event.h"
#include "stream_fixture.h"

#define STEPS_MAX 16

struct fixture {
	struct assembler *assembler;
	struct stream stream;
	struct step steps[STEPS_MAX]; /* in the order in which they came; their calls are freed */
	size_t call_counts[STEPS_MAX];
	size_t count;
	size_t outside;
	int result; /* what the receivers return */
};

static inline const struct fbt_table *find_row(const struct row_table *table, uint32_t nr)
{
	vec_for_each (row, &table->rows) {
		if (row->nr == nr)
			return row;
	}
	return NULL;
}

static inline int keep_step(void *ctx, struct window *window, struct step *step)
{
	struct fixture *fixture = ctx;

	assert_true(fixture->count < STEPS_MAX);
	assert_non_null(window);
	fixture->steps[fixture->count] = *step;
	fixture->call_counts[fixture->count++] = step->calls.count;
	return fixture->result;
}

static inline int count_call(void *ctx, const struct window *window, const struct fbt_call *call)
{
	struct fixture *fixture = ctx;

	fixture->outside++;
	return fixture->result;
}

static inline int open_fixture(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	const struct assembler_output output = {
		.on_step = keep_step, .on_call = count_call, .ctx = fixture};

	assert_non_null(fixture);
	fixture->assembler = assembler__new(&output);
	assert_non_null(fixture->assembler);
	*state = fixture;
	return 0;
}

static inline int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	assembler__free(fixture->assembler);
	free(fixture);
	return 0;
}

/* The fixture, with a window record at the front of its stream. */
static inline struct fixture *begin(void **state, uint32_t detail)
{
	struct fixture *fixture = *state;

	add_window(&fixture->stream, detail);
	return fixture;
}

/* Pushes all records of the stream. Returns the first error. */
static inline int play(struct fixture *fixture)
{
	const struct fbt_header *event;
	size_t position = 0;
	int err = 0;

	while (position < fixture->stream.size) {
		int result;
		long size = decode_event(fixture->stream.bytes + position,
					 fixture->stream.size - position, &event);

		assert_true(size > 0);
		result = assembler__push(fixture->assembler, event);
		err = err ? err : result;
		position += size;
	}
	return err;
}

static inline const struct window *view(const struct fixture *fixture)
{
	return assembler__window(fixture->assembler);
}

#endif
