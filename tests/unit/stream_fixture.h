/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Streams of records for tests. Include after cmocka.h. */
#ifndef FBT_STREAM_FIXTURE_H
#define FBT_STREAM_FIXTURE_H

#include <stdint.h>
#include <string.h>
#include "fbt_event.h"

struct stream {
	_Alignas(8) char bytes[1 << 16];
	size_t size;
};

/* A zeroed record of bytes, followed by count strings. Valid until the next one is added. */
static inline void *stream_add(struct stream *stream, uint16_t type, uint32_t bytes,
			       const char *const *strings, uint32_t count)
{
	struct fbt_header *header = (struct fbt_header *)(stream->bytes + stream->size);
	uint32_t size = bytes;

	memset(header, 0, bytes);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(stream->size + size + strlen(strings[i]) + 9 < sizeof(stream->bytes));
		memcpy((char *)header + size, strings[i], strlen(strings[i]) + 1);
		size += strlen(strings[i]) + 1;
	}
	assert_true(stream->size + size + 8 < sizeof(stream->bytes));
	while (size % 8)
		((char *)header)[size++] = 0;
	header->type = type;
	header->size = size;
	stream->size += size;
	return header;
}

static inline struct fbt_window *add_window(struct stream *stream, uint32_t detail)
{
	static const char *const strings[] = {"pid7_1", "0.1.0", "6.1.0", "box"};
	struct fbt_window *window =
		stream_add(stream, FBT_EVENT_WINDOW, sizeof(*window), strings, 4);

	window->start_ns = 1000;
	window->detail = detail;
	window->arch = FBT_ARCH_X86_64;
	return window;
}

static inline struct fbt_target *add_target(struct stream *stream, uint32_t tgid, const char *comm)
{
	const char *const strings[] = {comm, "/usr/bin/engine", "engine --serve"};
	struct fbt_target *target =
		stream_add(stream, FBT_EVENT_TARGET, sizeof(*target), strings, 3);

	target->tgid = tgid;
	target->start_ns = 1000;
	return target;
}

static inline struct fbt_thread_name *add_thread(struct stream *stream, uint32_t tgid, uint32_t tid,
						 const char *comm)
{
	struct fbt_thread_name *thread =
		stream_add(stream, FBT_EVENT_THREAD, sizeof(*thread), NULL, 0);

	thread->tgid = tgid;
	thread->tid = tid;
	strncpy(thread->comm, comm, sizeof(thread->comm) - 1);
	return thread;
}

static inline struct fbt_kind *add_kind(struct stream *stream, uint32_t kind, const char *name,
					const char *arg)
{
	const char *const strings[] = {name, "/usr/lib/libengine.so", arg};
	struct fbt_kind *record =
		stream_add(stream, FBT_EVENT_KIND, sizeof(*record), strings, arg ? 3 : 2);

	record->kind = kind;
	record->arg_count = arg ? 1 : 0;
	return record;
}

/* A step of process 7. */
static inline struct fbt_step *add_step(struct stream *stream, uint32_t tid, uint32_t kind,
					uint64_t start_ns, uint64_t end_ns)
{
	struct fbt_step *step = stream_add(stream, FBT_EVENT_STEP, sizeof(*step), NULL, 0);

	step->tgid = 7;
	step->tid = tid;
	step->kind = kind;
	step->start_ns = start_ns;
	step->end_ns = end_ns;
	step->thread_ns = end_ns - start_ns;
	return step;
}

/* A call of process 7 that takes 10 ns. */
static inline struct fbt_call *add_call(struct stream *stream, uint32_t tid, uint64_t start_ns)
{
	struct fbt_call *call = stream_add(stream, FBT_EVENT_CALL, sizeof(*call), NULL, 0);

	call->tgid = 7;
	call->tid = tid;
	call->start_ns = start_ns;
	call->duration_ns = 10;
	return call;
}

static inline struct fbt_table *add_table(struct stream *stream, uint32_t tgid, uint32_t nr,
					  uint64_t calls)
{
	struct fbt_table *row = stream_add(stream, FBT_EVENT_TABLE, sizeof(*row), NULL, 0);

	row->tgid = tgid;
	row->nr = nr;
	row->sum.calls = calls;
	return row;
}

static inline struct fbt_target_exit *add_exit(struct stream *stream, uint32_t tgid,
					       uint64_t end_ns)
{
	struct fbt_target_exit *exited =
		stream_add(stream, FBT_EVENT_TARGET_EXIT, sizeof(*exited), NULL, 0);

	exited->tgid = tgid;
	exited->end_ns = end_ns;
	return exited;
}

static inline struct fbt_window_end *add_end(struct stream *stream, uint64_t end_ns)
{
	struct fbt_window_end *end =
		stream_add(stream, FBT_EVENT_WINDOW_END, sizeof(*end), NULL, 0);

	end->end_ns = end_ns;
	return end;
}

#endif
