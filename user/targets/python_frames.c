/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/python_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proc/status.h"
#include "python/reader.h"

struct python_frames {
	struct python_stalls *stalls;
	struct python_reader *reader;
};

struct python_frames *python_frames__new(struct python_stalls *stalls)
{
	struct python_frames *frames = calloc(1, sizeof(*frames));

	if (!frames)
		return NULL;
	frames->stalls = stalls;
	frames->reader = python_reader__new();
	if (!frames->reader) {
		python_frames__free(frames);
		return NULL;
	}
	return frames;
}

void python_frames__free(struct python_frames *frames)
{
	if (!frames)
		return;
	python_reader__free(frames->reader);
	free(frames);
}

/* The ID of a thread in the PID namespace of its process; 0: it has ended. */
static uint32_t inner_tid(uint32_t tgid, uint32_t tid)
{
	struct thread_status status;

	if (thread_status_read(&status, (struct proc_ref){tgid, tid}))
		return 0;
	return status.ns_depth ? status.ns_tid : tid;
}

static uint32_t script_flags(const struct python_stack *stack)
{
	uint32_t flags =
		stack->flags & (PYTHON_STACK_DEEP | PYTHON_STACK_BROKEN) ? SCRIPT_PARTIAL : 0;

	return flags | (stack->flags & PYTHON_STACK_MOVED ? SCRIPT_MOVED : 0);
}

static size_t read_frames(void *ctx, uint32_t tgid, uint32_t tid, struct script_frame *to,
			  size_t max, uint32_t *flags)
{
	struct python_frames *frames = ctx;
	const struct python_stack *stack;
	struct python_place place;
	uint32_t inner;
	size_t count;
	int err;

	*flags = 0;
	if (!python_stalls__place(frames->stalls, tgid, &place))
		return 0;
	inner = inner_tid(tgid, tid);
	err = inner ? python_reader__stack(frames->reader, tgid, &place, inner, &stack) : -ESRCH;
	if (err) {
		log_debug("thread %u: its Python functions: %s", tid, strerror(-err));
		return 0;
	}
	count = stack->count < max ? stack->count : max;
	for (size_t i = 0; i < count; i++)
		to[i] = (struct script_frame){stack->frames[i].name, stack->frames[i].path,
					      stack->frames[i].line, stack->frames[i].is_entry};
	*flags = script_flags(stack) | (count < stack->count ? SCRIPT_PARTIAL : 0);
	return count;
}

static uint32_t find_holder(void *ctx, uint32_t tgid, uint32_t tid, uint64_t lock)
{
	struct python_frames *frames = ctx;
	struct python_place place;
	uint32_t inner;

	if (!python_stalls__is_gil(frames->stalls, tgid, lock) ||
	    !python_stalls__place(frames->stalls, tgid, &place))
		return 0;
	inner = inner_tid(tgid, tid);
	return inner ? python_reader__holder(frames->reader, tgid, &place, inner) : 0;
}

struct script_reader python_frames__reader(struct python_frames *frames)
{
	return (struct script_reader){read_frames, find_holder, frames};
}
