/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Threads and frames of a made-up CPython 3.11. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "python_fixture.h"

#define TID 77

struct fixture {
	struct fake_memory *fake;
	struct python_place place;
	uint64_t interpreter;
	uint64_t thread;
	uint64_t record; /* that points to the innermost frame */
	struct python_stack stack;
};

static uint64_t add_thread(struct fixture *fixture, uint32_t tid, uint64_t next)
{
	const struct python_layout *layout = &fixture->fake->layout;
	uint64_t thread = fake_take(fixture->fake, layout->thread_size);

	fake_word(fixture->fake, thread + layout->thread_interpreter, fixture->interpreter);
	fake_word(fixture->fake, thread + layout->thread_native, tid);
	fake_word(fixture->fake, thread + layout->thread_next, next);
	return thread;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct fake_memory *fake = fixture->fake = fake_new(11);
	const struct python_layout *layout = &fake->layout;

	fixture->place = (struct python_place){11, fake_take(fake, 512), fake->types};
	fixture->interpreter = fake_take(fake, 128);
	fake_word(fake, fixture->place.runtime + layout->runtime_interpreters,
		  fixture->interpreter);
	fixture->thread = add_thread(fixture, TID, 0);
	fake_word(fake, fixture->interpreter + layout->interpreter_threads, fixture->thread);
	fixture->record = fake_take(fake, 64);
	fake_word(fake, fixture->thread + layout->thread_frame, fixture->record);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	free(fixture->fake);
	free(fixture);
	return 0;
}

/* All code has one line for each instruction, from line 1. */
static uint64_t add_code(struct fixture *fixture, const char *name)
{
	static const uint8_t lines[] = {0x80 | 10 << 3, 0, 0, 0x80 | 11 << 3, 0, 0, 0x80 | 11 << 3};
	struct fake_memory *fake = fixture->fake;
	const struct python_layout *layout = &fake->layout;
	uint64_t code = fake_take(fake, 256);
	uint32_t first = 1;

	fake_word(fake, code + PYTHON_OBJECT_TYPE, CODE_TYPE);
	fake_word(fake, code + layout->code_name, fake_ascii(fake, name));
	fake_word(fake, code + layout->code_filename, fake_ascii(fake, "/srv/app/model.py"));
	fake_word(fake, code + layout->code_lines, fake_bytes(fake, lines, sizeof(lines)));
	fake_put(fake, code + layout->code_first_line, &first, sizeof(first));
	return code;
}

static uint64_t add_frame(struct fixture *fixture, uint64_t code, uint64_t previous, bool is_entry,
			  uint32_t instruction)
{
	struct fake_memory *fake = fixture->fake;
	const struct python_layout *layout = &fake->layout;
	uint64_t frame = fake_take(fake, layout->frame_size);

	fake_word(fake, frame + layout->frame_code, code);
	fake_word(fake, frame + layout->frame_previous, previous);
	fake_word(fake, frame + layout->frame_instr, code + layout->code_bytes + 2 * instruction);
	fake_byte(fake, frame + layout->frame_owner, is_entry);
	fake_word(fake, fixture->record + layout->record_frame, frame);
	return frame;
}

static int read_stack(struct fixture *fixture, uint32_t tid)
{
	struct python_look *look = NULL;
	int err = python_look__begin(&look, &fixture->fake->memory, &fixture->place);

	if (err)
		return err;
	err = python_look__stack(look, tid, &fixture->stack);
	python_look__end(look);
	return err;
}

static void is_frame(const struct fixture *fixture, uint32_t index, const char *name, uint32_t line)
{
	const struct python_frame *frame = &fixture->stack.frames[index];

	assert_string_equal(frame->name, name);
	assert_string_equal(frame->path, "/srv/app/model.py");
	assert_int_equal(frame->line, line);
}

static void functions_are_the_innermost_first(void **state)
{
	struct fixture *fixture = *state;
	uint64_t outer = add_frame(fixture, add_code(fixture, "main"), 0, true, 0);

	add_frame(fixture, add_code(fixture, "Engine.step"), outer, false, 2);
	assert_int_equal(read_stack(fixture, TID), 0);
	assert_int_equal(fixture->stack.count, 2);
	assert_int_equal(fixture->stack.flags, 0);
	is_frame(fixture, 0, "Engine.step", 3);
	is_frame(fixture, 1, "main", 1);
	assert_false(fixture->stack.frames[0].is_entry);
	assert_true(fixture->stack.frames[1].is_entry);
}

static void a_thread_without_functions_has_none(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(read_stack(fixture, TID), -ENOENT);
	assert_int_equal(read_stack(fixture, TID + 1), -ENOENT);
	assert_int_equal(read_stack(fixture, 0), -ENOENT);
}

/* Between the two writes by which the interpreter's loop is entered. */
static void a_thread_that_enters_its_first_function_is_not_sure(void **state)
{
	struct fixture *fixture = *state;
	struct fake_memory *fake = fixture->fake;
	uint64_t on_stack = fake_take(fake, 2048) + 1024,
		 at = fixture->thread + fake->layout.thread_frame;

	fake_word(fake, at, on_stack);
	assert_int_equal(read_stack(fixture, TID), -EAGAIN);
	/* The loop has been left since the thread was read, and its stack is gone. */
	fake_word(fake, at, 0xdead0000);
	assert_int_equal(read_stack(fixture, TID), -EAGAIN);
	fixture->record = on_stack;
	fake_word(fake, at, on_stack);
	add_frame(fixture, add_code(fixture, "main"), 0, true, 0);
	assert_int_equal(read_stack(fixture, TID), 0);
	assert_int_equal(fixture->stack.flags, 0);
}

static void what_is_no_code_ends_the_stack(void **state)
{
	struct fixture *fixture = *state;
	uint64_t bad = add_code(fixture, "bad");
	uint64_t outer = add_frame(fixture, bad, 0, true, 0);

	add_frame(fixture, add_code(fixture, "good"), outer, false, 0);
	fake_word(fixture->fake, bad + PYTHON_OBJECT_TYPE, TEXT_TYPE);
	assert_int_equal(read_stack(fixture, TID), 0);
	assert_int_equal(fixture->stack.count, 1);
	assert_int_equal(fixture->stack.flags, PYTHON_STACK_BROKEN);
	add_frame(fixture, bad, 0, true, 0);
	assert_int_equal(read_stack(fixture, TID), -EAGAIN);
	add_frame(fixture, add_code(fixture, ""), 0, true, 0);
	assert_int_equal(read_stack(fixture, TID), -EAGAIN);
}

static void a_caller_that_cannot_be_read_ends_the_stack(void **state)
{
	struct fixture *fixture = *state;

	add_frame(fixture, add_code(fixture, "good"), 0xdead0000, false, 0);
	assert_int_equal(read_stack(fixture, TID), 0);
	assert_int_equal(fixture->stack.count, 1);
	assert_int_equal(fixture->stack.flags, PYTHON_STACK_BROKEN);
}

static void frames_in_a_circle_end(void **state)
{
	struct fixture *fixture = *state;
	uint64_t frame = add_frame(fixture, add_code(fixture, "again"), 0, false, 0);

	fake_word(fixture->fake, frame + fixture->fake->layout.frame_previous, frame);
	assert_int_equal(read_stack(fixture, TID), 0);
	assert_int_equal(fixture->stack.count, PYTHON_FRAMES_MAX);
	assert_int_equal(fixture->stack.flags, PYTHON_STACK_DEEP);
}

static void threads_in_a_circle_end(void **state)
{
	struct fixture *fixture = *state;

	add_frame(fixture, add_code(fixture, "main"), 0, true, 0);
	fake_word(fixture->fake, fixture->thread + fixture->fake->layout.thread_next,
		  fixture->thread);
	/* It is listed many times: which one is right cannot be told. */
	assert_int_equal(read_stack(fixture, TID), -EAGAIN);
	assert_true(fixture->fake->reads < 100000);
	fake_word(fixture->fake, fixture->interpreter + fixture->fake->layout.interpreter_next,
		  fixture->interpreter);
	fixture->fake->reads = 0;
	assert_int_equal(read_stack(fixture, TID), -EAGAIN);
	assert_true(fixture->fake->reads < 100000);
}

static void a_thread_of_another_interpreter_is_not_believed(void **state)
{
	struct fixture *fixture = *state;

	add_frame(fixture, add_code(fixture, "main"), 0, true, 0);
	fake_word(fixture->fake, fixture->thread + fixture->fake->layout.thread_interpreter, 64);
	assert_int_equal(read_stack(fixture, TID), -EIO);
}

/* One frame is left and another one entered each time that the thread is read. */
static struct fixture *moving;
static uint64_t inner[2];

static void move(struct fake_memory *fake, uint64_t address)
{
	if (address == moving->record + fake->layout.record_frame)
		fake_word(fake, address, inner[fake->reads++ % 2]);
}

static void of_a_thread_that_goes_on_the_common_part_is_told(void **state)
{
	struct fixture *fixture = moving = *state;
	uint64_t outer = add_frame(fixture, add_code(fixture, "loop"), 0, true, 1);

	inner[0] = add_frame(fixture, add_code(fixture, "left"), outer, false, 0);
	inner[1] = add_frame(fixture, add_code(fixture, "right"), outer, false, 0);
	fixture->fake->on_read = move;
	assert_int_equal(read_stack(fixture, TID), 0);
	assert_int_equal(fixture->stack.flags, PYTHON_STACK_MOVED);
	assert_int_equal(fixture->stack.count, 1);
	is_frame(fixture, 0, "loop", 2);
}

static void a_thread_that_has_nothing_in_common_is_not_sure(void **state)
{
	struct fixture *fixture = moving = *state;

	inner[0] = add_frame(fixture, add_code(fixture, "left"), 0, true, 0);
	inner[1] = add_frame(fixture, add_code(fixture, "right"), 0, true, 0);
	fixture->fake->on_read = move;
	assert_int_equal(read_stack(fixture, TID), -EAGAIN);
}

static uint32_t find_holder(struct fixture *fixture)
{
	struct python_look *look = NULL;
	uint32_t holder;

	assert_int_equal(python_look__begin(&look, &fixture->fake->memory, &fixture->place), 0);
	holder = python_look__holder(look, TID);
	python_look__end(look);
	return holder;
}

static void the_gil_has_a_holder_while_it_is_locked(void **state)
{
	struct fixture *fixture = *state;
	const struct python_layout *layout = &fixture->fake->layout;
	uint64_t other = add_thread(fixture, 88, 0);
	uint64_t runtime = fixture->place.runtime;

	fake_word(fixture->fake, fixture->thread + layout->thread_next, other);
	fake_word(fixture->fake, runtime + layout->gil_holder, other);
	assert_int_equal(find_holder(fixture), 0);
	fake_word(fixture->fake, runtime + layout->gil_locked, 1);
	assert_int_equal(find_holder(fixture), 88);
	/* It is no thread of the interpreter. */
	fake_word(fixture->fake, runtime + layout->gil_holder, other + 8);
	assert_int_equal(find_holder(fixture), 0);
}

/* What an interpreter of 3.13 says of itself. */
static int find_layout(struct fake_memory *fake, uint32_t minor)
{
	struct python_layout layout;

	return python_layout_find(&layout, &fake->memory, minor, FAKE_BASE);
}

static void an_interpreter_that_is_not_known_is_refused(void **state)
{
	struct fake_memory *fake = ((struct fixture *)*state)->fake;
	static const uint16_t offsets[] = {
		[9] = 72,  [21] = 8,  [22] = 16,  [23] = 72,  [24] = 152, [25] = 160, [29] = 8,
		[31] = 56, [33] = 70, [35] = 112, [37] = 128, [38] = 136, [39] = 68,  [43] = 200,
		[45] = 8,  [65] = 16, [66] = 32,  [68] = 32,  [69] = 16,  [70] = 40};

	assert_int_equal(find_layout(fake, 8), -ENOTSUP);
	assert_int_equal(find_layout(fake, 15), -ENOTSUP);
	assert_int_equal(find_layout(fake, 13), -ENOTSUP);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		fake_word(fake, FAKE_BASE + 8 * i, offsets[i]);
	fake_put(fake, FAKE_BASE, "xdebugpy", 8);
	fake_word(fake, FAKE_BASE + 8, 0x030d05f0);
	assert_int_equal(find_layout(fake, 13), 0);
	assert_int_equal(find_layout(fake, 14), -ENOTSUP);
	fake_word(fake, FAKE_BASE + 16, 1); /* free-threaded */
	assert_int_equal(find_layout(fake, 13), -ENOTSUP);
	fake_word(fake, FAKE_BASE + 16, 0);
	fake_word(fake, FAKE_BASE + 8 * 31, UINT64_MAX - 4); /* far away */
	assert_int_equal(find_layout(fake, 13), -ENOTSUP);
	fake_word(fake, FAKE_BASE + 8 * 31, 56);
	fake_word(fake, FAKE_BASE + 8 * 70, 48); /* another kind of text */
	assert_int_equal(find_layout(fake, 13), -ENOTSUP);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(functions_are_the_innermost_first),
		FACT(a_thread_without_functions_has_none),
		FACT(a_thread_that_enters_its_first_function_is_not_sure),
		FACT(what_is_no_code_ends_the_stack),
		FACT(a_caller_that_cannot_be_read_ends_the_stack),
		FACT(frames_in_a_circle_end),
		FACT(threads_in_a_circle_end),
		FACT(a_thread_of_another_interpreter_is_not_believed),
		FACT(of_a_thread_that_goes_on_the_common_part_is_told),
		FACT(a_thread_that_has_nothing_in_common_is_not_sure),
		FACT(the_gil_has_a_holder_while_it_is_locked),
		FACT(an_interpreter_that_is_not_known_is_refused),
	};

	return cmocka_run_group_tests_name("python/frames", tests, NULL, NULL);
}
