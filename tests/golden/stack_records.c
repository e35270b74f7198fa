/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "records.h"

#include <stdlib.h>
#include <string.h>
#include "fbt_look.h"

static void write_code(struct events *events)
{
	struct fbt_code *code = record_begin(events, FBT_EVENT_CODE, sizeof(*code));
	const char *function = line_take_text(&events->line, "function", "");
	const char *path = line_take_text(&events->line, "path", "/usr/bin/engine");
	const char *build_id = line_take_text(&events->line, "build_id", "");

	code->tgid = record_take_tgid(events);
	code->id = (uint32_t)line_take_number(&events->line, "id", 1);
	code->address = line_take_number(&events->line, "address", 0);
	code->offset = line_take_number(&events->line, "offset", 0);
	if (line_take_number(&events->line, "script", 0))
		code->header.flags = FBT_CODE_SCRIPT;
	record_add_string(events, function, strlen(function));
	record_add_string(events, path, strlen(path));
	record_add_string(events, build_id, strlen(build_id));
}

/* codes is a list of ids, the innermost first. */
static uint32_t take_codes(struct events *events, __u32 to[FBT_STACK_FRAMES])
{
	const char *codes = line_take_text(&events->line, "codes", "1");
	uint32_t count = 0;

	while (*codes && count < FBT_STACK_FRAMES) {
		char *end;

		to[count++] = (uint32_t)strtoul(codes, &end, 10);
		codes = *end ? end + 1 : end;
	}
	return count;
}

/* A thread of a chain, or with threads=N a group at a hang. */
static void write_look_thread(struct events *events)
{
	static const char *const doings[] = {"unknown", "call",	  "cpu", "cpu_wait",
					     "stopped", "kernel", NULL};
	struct fbt_look_thread *thread =
		record_begin(events, FBT_EVENT_LOOK_THREAD, sizeof(*thread));
	struct line *line = &events->line;

	thread->tgid = record_take_tgid(events);
	thread->tid = (uint32_t)line_take_number(line, "tid", thread->tgid);
	thread->owner = (uint32_t)line_take_number(line, "owner", thread->tid);
	thread->start_ns = events->window_ns + line_take_time(line, "start", 0);
	thread->time_ns = events->window_ns + line_take_time(line, "time", 0);
	thread->depth = (uint32_t)line_take_number(line, "depth", 0);
	thread->threads = (uint32_t)line_take_number(line, "threads", 0);
	thread->doing = line_take_name(line, "doing", doings);
	thread->call_ns = line_take_time(line, "call", 0);
	thread->lock = line_take_number(line, "lock", 0);
	thread->nr = record_take_syscall(events);
	thread->count = take_codes(events, thread->codes);
	if (thread->doing == FBT_DOING_CALL || thread->call_ns)
		thread->header.flags |= FBT_LOOK_IN_CALL;
	if (line_take_number(line, "near", 0))
		thread->header.flags |= FBT_LOOK_SAMPLE;
	if (line_take_number(line, "gil", 0))
		thread->header.flags |= FBT_LOOK_GIL;
	if (line_take_number(line, "cycle", 0))
		thread->header.flags |= FBT_LOOK_CYCLE;
	if (line_take_number(line, "hang", thread->threads != 0))
		thread->header.flags |= FBT_LOOK_HANG;
	if (thread->threads)
		thread->header.flags |= FBT_LOOK_GROUP;
	thread->tids[0] = thread->owner;
	if (!thread->threads)
		thread->threads = 1;
}

static void write_look(struct events *events)
{
	struct fbt_look *look = record_begin(events, FBT_EVENT_LOOK, sizeof(*look));

	look->tgid = record_take_tgid(events);
	look->tid = (uint32_t)line_take_number(&events->line, "tid", look->tgid);
	look->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	look->time_ns = events->window_ns + line_take_time(&events->line, "time", 0);
	look->threads = (uint32_t)line_take_number(&events->line, "threads", 1);
	look->groups = (uint32_t)line_take_number(&events->line, "groups", 1);
}

static void write_looks(struct events *events)
{
	struct fbt_looks *looks = record_begin(events, FBT_EVENT_LOOKS, sizeof(*looks));

	looks->taken = line_take_number(&events->line, "taken", 0);
	looks->skipped = line_take_number(&events->line, "skipped", 0);
	looks->stale = line_take_number(&events->line, "stale", 0);
	looks->blind = line_take_number(&events->line, "blind", 0);
	looks->cost_ns = line_take_time(&events->line, "cost", 0);
}

static void write_stack(struct events *events)
{
	struct fbt_stack *stack = record_begin(events, FBT_EVENT_STACK, sizeof(*stack));
	static const char *const reaches[] = {"whole", "cut", "lost", NULL};

	stack->tgid = record_take_tgid(events);
	stack->tid = (uint32_t)line_take_number(&events->line, "tid", stack->tgid);
	stack->owner = (uint32_t)line_take_number(&events->line, "owner", stack->tid);
	stack->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	stack->nr = record_take_syscall(events);
	if (stack->owner != stack->tid)
		stack->header.flags |= FBT_STACK_WAKER;
	stack->header.flags |= line_take_name(&events->line, "reach", reaches);
	if (line_take_number(&events->line, "guessed", 0))
		stack->header.flags |= FBT_STACK_GUESSED;
	if (line_take_number(&events->line, "apart", 0))
		stack->header.flags |= FBT_STACK_APART;
	if (line_take_number(&events->line, "moved", 0))
		stack->header.flags |= FBT_STACK_MOVED;
	stack->samples = (uint32_t)line_take_number(&events->line, "samples", 0);
	if (stack->samples)
		stack->header.flags |= FBT_STACK_SAMPLED;
	stack->count = take_codes(events, stack->codes);
}

static void write_stacks(struct events *events)
{
	struct fbt_stacks *stacks = record_begin(events, FBT_EVENT_STACKS, sizeof(*stacks));

	stacks->taken = line_take_number(&events->line, "taken", 0);
	stacks->skipped = line_take_number(&events->line, "skipped", 0);
	stacks->copy_ns = line_take_time(&events->line, "copy", 0);
}

static const struct {
	const char *type;
	record_writer write;
} writers[] = {
	{"code", write_code},	{"look_thread", write_look_thread},
	{"look", write_look},	{"looks", write_looks},
	{"stack", write_stack}, {"stacks", write_stacks},
};

record_writer stack_record_writer(const char *type)
{
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		if (!strcmp(writers[i].type, type))
			return writers[i].write;
	}
	return NULL;
}
