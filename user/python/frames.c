/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INTERPRETERS_MAX 64
#define THREADS_MAX	 2048 /* thread states, of all interpreters */
#define LINKS_MAX	 256  /* steps from frame to frame, those that are no functions included */
#define TRIES		 5
/* Most bytes of a PyThreadState; it has some 400. */
#define THREAD_SIZE_MAX 1024

/* In glibc's struct pthread of x86-64: the kernel's ID of the thread. */
#define PTHREAD_TID 720
/* Larger ones the kernel does not give (PID_MAX_LIMIT). */
#define TID_MAX (1u << 22)

struct state {
	uint64_t address;
	uint64_t interpreter;
	uint32_t tid; /* 0: not known */
	bool has_frame;
};

/* A frame, and what it was when it was read. */
struct link {
	uint64_t frame;
	uint64_t code;
	uint64_t instr;
	bool is_entry;
};

struct chain {
	struct link links[PYTHON_FRAMES_MAX];
	uint32_t count;
	uint32_t flags; /* PYTHON_STACK_* */
};

struct python_look {
	const struct python_memory *memory;
	struct python_place place;
	struct python_layout layout;
	struct state states[THREADS_MAX];
	uint32_t count;
	bool is_partial; /* threads may be missing */
};

/* A part of a structure. */
struct part {
	uint8_t bytes[PYTHON_PART_MAX];
};

static uint64_t word_of(const struct part *part, uint32_t at)
{
	uint64_t word;

	memcpy(&word, part->bytes + at, sizeof(word));
	return word;
}

static uint32_t half_of(const struct part *part, uint32_t at)
{
	uint32_t half;

	memcpy(&half, part->bytes + at, sizeof(half));
	return half;
}

static bool read_part(const struct python_look *look, uint64_t address, uint32_t size,
		      struct part *part)
{
	return address % 8 == 0 && memory_read(look->memory, address, part->bytes, size);
}

/*
 * glibc knows the ID also where CPython has one that is out of date: 3.11 keeps that of the parent
 * after a fork. Its structure begins with its own address, and has it once more.
 */
static uint32_t ask_glibc(const struct python_look *look, uint64_t pthread)
{
	uint64_t head[3];
	uint32_t tid;

	if (pthread % 8 || !memory_read(look->memory, pthread, head, sizeof(head)) ||
	    head[0] != pthread || head[2] != pthread ||
	    !memory_read(look->memory, pthread + PTHREAD_TID, &tid, sizeof(tid)) || tid > TID_MAX)
		return 0;
	return tid;
}

/*
 * The innermost frame; 0: there is none. is_between: what is there says nothing. The interpreter's
 * loop has its record on the C stack, which the thread points to before the loop writes a frame to
 * it, and after it has taken the last one from it. A thread that is in no loop has its record in
 * its own structure.
 */
static uint64_t first_frame(const struct python_look *look, uint64_t address,
			    const struct part *state, bool *is_between)
{
	uint64_t at = word_of(state, look->layout.thread_frame), frame = 0;

	*is_between = false;
	if (!look->layout.has_record)
		return at;
	if (memory_word(look->memory, at + look->layout.record_frame, &frame) && frame)
		return frame;
	*is_between = at && at - address >= THREAD_SIZE_MAX;
	return 0;
}

/* The ID that the kernel knows it by; 0: not known. */
static uint32_t find_tid(const struct python_look *look, const struct part *state)
{
	const struct python_layout *layout = &look->layout;
	uint64_t native = layout->thread_native ? word_of(state, layout->thread_native) : 0;
	uint32_t tid = ask_glibc(look, word_of(state, layout->thread_id));

	return tid || native > TID_MAX ? tid : (uint32_t)native;
}

/* False: it is no thread of that interpreter (any more). */
static bool add_state(struct python_look *look, uint64_t interpreter, uint64_t address,
		      uint64_t *next)
{
	const struct python_layout *layout = &look->layout;
	struct state *state = &look->states[look->count];
	struct part part;
	bool is_between;

	if (look->count == THREADS_MAX || !read_part(look, address, layout->thread_size, &part) ||
	    word_of(&part, layout->thread_interpreter) != interpreter)
		return false;
	*state = (struct state){address, interpreter, find_tid(look, &part),
				first_frame(look, address, &part, &is_between) != 0};
	state->has_frame |= is_between;
	*next = word_of(&part, layout->thread_next);
	look->count++;
	return true;
}

static void add_threads(struct python_look *look, uint64_t interpreter)
{
	uint64_t at = 0;

	if (!memory_word(look->memory, interpreter + look->layout.interpreter_threads, &at))
		look->is_partial = true;
	while (at) {
		if (add_state(look, interpreter, at, &at))
			continue;
		look->is_partial = true;
		return;
	}
}

/* Threads come and go meanwhile. */
static void list_threads(struct python_look *look)
{
	uint64_t at = 0;
	uint32_t count = 0;

	look->count = 0;
	look->is_partial = !memory_word(
		look->memory, look->place.runtime + look->layout.runtime_interpreters, &at);
	while (at && count++ < INTERPRETERS_MAX) {
		add_threads(look, at);
		if (!memory_word(look->memory, at + look->layout.interpreter_next, &at)) {
			look->is_partial = true;
			return;
		}
	}
	look->is_partial |= at != 0;
}

int python_look__begin(struct python_look **result, const struct python_memory *memory,
		       const struct python_place *place)
{
	struct python_look *look = calloc(1, sizeof(*look));
	int err;

	if (!look)
		return -ENOMEM;
	look->memory = memory;
	look->place = *place;
	err = python_layout_find(&look->layout, memory, place->minor, place->runtime);
	if (!err && (!place->types.code || !place->types.text || !place->types.bytes ||
		     (look->layout.is_object && !place->types.frame)))
		err = -ENOTSUP;
	for (int i = 0; !err && i < TRIES; i++) {
		list_threads(look);
		if (!look->is_partial)
			break;
	}
	if (!err && !look->count)
		err = -EIO;
	if (err)
		python_look__end(look);
	else
		*result = look;
	return err;
}

void python_look__end(struct python_look *look)
{
	free(look);
}

/*
 * Adds what a frame is: a function, or a mark that the one before was called from C. False: it is
 * no frame.
 */
static bool add_link(const struct python_look *look, uint64_t address, struct chain *chain,
		     uint64_t *previous)
{
	const struct python_layout *layout = &look->layout;
	struct link *link = &chain->links[chain->count];
	struct part part;
	uint8_t owner;

	if (!read_part(look, address, layout->frame_size, &part))
		return false;
	/* One that has ended is kept for the next call, and leads to another such. */
	if (layout->is_object && (word_of(&part, PYTHON_OBJECT_TYPE) != look->place.types.frame ||
				  part.bytes[layout->frame_running] != layout->running))
		return false;
	*previous = word_of(&part, layout->frame_previous);
	owner = layout->is_object ? 0 : part.bytes[layout->frame_owner];
	if (layout->minor >= 12 && owner >= PYTHON_OWNER_ENTRY) {
		if (owner == PYTHON_OWNER_ENTRY && chain->count)
			link[-1].is_entry = true;
		return true;
	}
	if (chain->count == PYTHON_FRAMES_MAX) {
		chain->flags |= PYTHON_STACK_DEEP;
		*previous = 0;
		return true;
	}
	*link = (struct link){
		.frame = address,
		.code = word_of(&part, layout->frame_code) & layout->code_mask,
		.instr = layout->index_bytes ? half_of(&part, layout->frame_instr)
					     : word_of(&part, layout->frame_instr),
		.is_entry = layout->is_object || (layout->minor == 11 && owner),
	};
	chain->count++;
	return true;
}

static void read_chain(const struct python_look *look, const struct state *state,
		       struct chain *chain)
{
	uint64_t at = 0;
	struct part part;
	uint32_t steps = 0;
	bool is_between = false;

	memset(chain, 0, sizeof(*chain));
	if (read_part(look, state->address, look->layout.thread_size, &part) &&
	    word_of(&part, look->layout.thread_interpreter) == state->interpreter &&
	    find_tid(look, &part) == state->tid)
		at = first_frame(look, state->address, &part, &is_between);
	if (is_between)
		chain->flags |= PYTHON_STACK_BROKEN;
	while (at && steps++ < LINKS_MAX) {
		if (add_link(look, at, chain, &at))
			continue;
		chain->flags |= PYTHON_STACK_BROKEN;
		return;
	}
	if (at)
		chain->flags |= PYTHON_STACK_DEEP;
}

/* From the first instruction; a negative one is before it. */
static int64_t instr_of(const struct python_look *look, const struct link *link)
{
	if (look->layout.index_bytes)
		return (int64_t)(int32_t)link->instr * look->layout.index_bytes;
	return (int64_t)(link->instr - link->code - look->layout.code_bytes);
}

/* False: what the frame says is its code is none, or has no name. */
static bool name_frame(const struct python_look *look, const struct link *link,
		       struct python_frame *frame)
{
	const struct python_layout *layout = &look->layout;
	const struct python_types *types = &look->place.types;
	uint64_t file, lines;
	struct part part;

	if (!read_part(look, link->code, layout->code_size, &part) ||
	    word_of(&part, PYTHON_OBJECT_TYPE) != types->code ||
	    !python_text_read(layout, look->memory, types, word_of(&part, layout->code_name),
			      frame->name, sizeof(frame->name)) ||
	    !*frame->name)
		return false;
	file = word_of(&part, layout->code_filename);
	lines = word_of(&part, layout->code_lines);
	python_text_read(layout, look->memory, types, file, frame->path, sizeof(frame->path));
	frame->line =
		python_line_find(layout, look->memory, types, lines,
				 half_of(&part, layout->code_first_line), instr_of(look, link));
	frame->is_entry = link->is_entry;
	return true;
}

static void name_frames(const struct python_look *look, const struct chain *chain,
			struct python_stack *stack)
{
	stack->flags = chain->flags;
	for (stack->count = 0; stack->count < chain->count; stack->count++) {
		if (name_frame(look, &chain->links[stack->count], &stack->frames[stack->count]))
			continue;
		stack->flags &= ~(uint32_t)PYTHON_STACK_DEEP;
		stack->flags |= PYTHON_STACK_BROKEN;
		return;
	}
}

static bool is_same_frame(const struct link *one, const struct link *other)
{
	return one->frame == other->frame && one->code == other->code &&
	       one->is_entry == other->is_entry;
}

static bool is_same(const struct chain *a, const struct chain *b)
{
	if (a->count != b->count || a->flags != b->flags)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!is_same_frame(&a->links[i], &b->links[i]) ||
		    a->links[i].instr != b->links[i].instr)
			return false;
	return true;
}

/* Whether two chains are the same from there on. That of many frames is cut at its end. */
static bool has_same_end(const struct chain *a, uint32_t from, const struct chain *b, uint32_t at)
{
	while (from < a->count && at < b->count)
		if (!is_same_frame(&a->links[from++], &b->links[at++]))
			return false;
	return (from == a->count || b->flags & PYTHON_STACK_DEEP) &&
	       (at == b->count || a->flags & PYTHON_STACK_DEEP);
}

/*
 * How many of the innermost frames of a are not in b, which was read later. Such a frame may be
 * another thread's by now, as memory of frames is used again.
 */
static uint32_t count_gone(const struct chain *a, const struct chain *b)
{
	for (uint32_t from = 0; from < a->count; from++)
		for (uint32_t at = 0; at < b->count; at++)
			if (is_same_frame(&a->links[from], &b->links[at]) &&
			    has_same_end(a, from, b, at))
				return from;
	return a->count;
}

static void drop_inner(struct chain *chain, uint32_t count)
{
	chain->count -= count;
	memmove(chain->links, chain->links + count, chain->count * sizeof(chain->links[0]));
}

/*
 * A thread may have a state in each interpreter. It is in one that has frames, and of several such
 * which one runs cannot be told.
 */
static const struct state *find_state(const struct python_look *look, uint32_t tid, int *err)
{
	const struct state *found = NULL;

	*err = 0;
	for (uint32_t i = 0; tid && i < look->count; i++) {
		const struct state *state = &look->states[i];

		if (state->tid != tid || (found && !state->has_frame))
			continue;
		if (found && found->has_frame)
			*err = -EAGAIN;
		found = state;
	}
	if (!found)
		*err = look->is_partial ? -EAGAIN : -ENOENT;
	return found;
}

static bool is_worse(const struct chain *a, const struct chain *b)
{
	bool is_whole = a->count && !(a->flags & PYTHON_STACK_BROKEN);

	return !is_whole && b->count && !(b->flags & PYTHON_STACK_BROKEN);
}

/* What the thread is in, if two readings agree; else what two of these have in common. */
static void read_twice(const struct python_look *look, const struct state *state,
		       struct python_stack *stack)
{
	struct chain last, now, next;

	read_chain(look, state, &now);
	last = now;
	for (int i = 0; i < TRIES; i++) {
		name_frames(look, &now, stack);
		read_chain(look, state, &next);
		if (is_same(&now, &next))
			return;
		if (is_worse(&next, &now))
			continue;
		last = now;
		now = next;
	}
	drop_inner(&last, count_gone(&last, &now));
	name_frames(look, &last, stack);
	stack->flags |= PYTHON_STACK_MOVED;
}

int python_look__stack(struct python_look *look, uint32_t tid, struct python_stack *stack)
{
	int err;
	const struct state *state = find_state(look, tid, &err);

	stack->count = stack->flags = 0;
	if (err)
		return err;
	read_twice(look, state, stack);
	if (stack->count)
		return 0;
	return stack->flags ? -EAGAIN : -ENOENT;
}

/* Where the GIL of an interpreter lies; 0: not known. */
static uint64_t find_gil(const struct python_look *look, uint64_t interpreter)
{
	uint64_t gil = 0;

	if (!look->layout.has_own_gil)
		return look->place.runtime;
	return memory_word(look->memory, interpreter + look->layout.gil, &gil) ? gil : 0;
}

uint32_t python_look__holder(struct python_look *look, uint32_t waiter)
{
	const struct python_layout *layout = &look->layout;
	int err;
	const struct state *state = find_state(look, waiter, &err);
	uint64_t gil = state && !err ? find_gil(look, state->interpreter) : 0, holder = 0;
	uint32_t locked = 0;

	if (!gil || !memory_word(look->memory, gil + layout->gil_holder, &holder) ||
	    !memory_read(look->memory, gil + layout->gil_locked, &locked, sizeof(locked)) ||
	    locked != 1)
		return 0;
	for (uint32_t i = 0; i < look->count; i++)
		if (look->states[i].address == holder)
			return look->states[i].tid;
	return 0;
}
