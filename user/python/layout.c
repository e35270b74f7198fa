/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/layout.h"

#include <errno.h>
#include <string.h>

/* What 3.9 to 3.12 do not say themselves. */
static const struct python_layout known[] = {
	{
		.minor = 9,
		.runtime_interpreters = 32,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.gil_holder = 360,
		.gil_locked = 368,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 176,
		.thread_frame = 24,
		.thread_size = 184,
		.is_object = true,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instr = 104,
		.frame_running = 116,
		.running = 1,
		.frame_size = 120,
		.index_bytes = 1,
		.code_filename = 104,
		.code_name = 112,
		.code_lines = 120,
		.code_first_line = 40,
		.code_size = 128,
		.lines = PYTHON_LINES_LNOTAB,
		.ascii_text = 48,
		.other_text = 72,
	},
	{
		.minor = 10,
		.runtime_interpreters = 32,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.gil_holder = 360,
		.gil_locked = 368,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 176,
		.thread_frame = 24,
		.thread_size = 184,
		.is_object = true,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instr = 96,
		.frame_running = 108,
		.running = 0,
		.frame_size = 112,
		.index_bytes = 2,
		.code_filename = 104,
		.code_name = 112,
		.code_lines = 120,
		.code_first_line = 40,
		.code_size = 128,
		.lines = PYTHON_LINES_RANGES,
		.ascii_text = 48,
		.other_text = 72,
	},
	{
		.minor = 11,
		.runtime_interpreters = 40,
		.interpreter_next = 0,
		.interpreter_threads = 16,
		.gil_holder = 368,
		.gil_locked = 376,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 152,
		.thread_native = 160,
		.thread_frame = 56,
		.has_record = true,
		.record_frame = 8,
		.thread_size = 168,
		.frame_previous = 48,
		.frame_code = 32,
		.frame_instr = 56,
		.frame_owner = 68,
		.frame_size = 72,
		.code_filename = 112,
		.code_name = 128,
		.code_lines = 136,
		.code_first_line = 72,
		.code_bytes = 184,
		.code_size = 144,
		.lines = PYTHON_LINES_LOCATIONS,
		.ascii_text = 48,
		.other_text = 72,
	},
	{
		.minor = 12,
		.runtime_interpreters = 40,
		.interpreter_next = 0,
		.interpreter_threads = 72,
		.has_own_gil = true,
		.gil = 384,
		.gil_holder = 8,
		.gil_locked = 16,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 136,
		.thread_native = 144,
		.thread_frame = 56,
		.has_record = true,
		.record_frame = 0,
		.thread_size = 152,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instr = 56,
		.frame_owner = 70,
		.frame_size = 72,
		.code_filename = 112,
		.code_name = 128,
		.code_lines = 136,
		.code_first_line = 68,
		.code_bytes = 192,
		.code_size = 144,
		.lines = PYTHON_LINES_LOCATIONS,
		.ascii_text = 40,
		.other_text = 56,
	},
};

/* What the interpreter says: a cookie, its version, and words. */
#define COOKIE	  "xdebugpy"
#define WORDS_MAX 88

/* The numbers of these words, the cookie being 0. */
struct said {
	uint8_t interpreters, next, threads, gil, gil_base, gil_locked, gil_holder;
	uint8_t thread_next, thread_interpreter, thread_frame, thread_id, thread_native;
	uint8_t previous, code, instr, owner;
	uint8_t filename, name, lines, first_line, bytes;
	uint8_t type, bytes_size, bytes_data, text_state, text_length, ascii_size;
};

static const struct said said_by_13 = {
	.interpreters = 5,
	.next = 8,
	.threads = 9,
	.gil = 14,
	.gil_base = 15,
	.gil_locked = 17,
	.gil_holder = 18,
	.thread_next = 21,
	.thread_interpreter = 22,
	.thread_frame = 23,
	.thread_id = 24,
	.thread_native = 25,
	.previous = 29,
	.code = 30,
	.instr = 31,
	.owner = 33,
	.filename = 35,
	.name = 37,
	.lines = 38,
	.first_line = 39,
	.bytes = 43,
	.type = 45,
	.bytes_size = 65,
	.bytes_data = 66,
	.text_state = 68,
	.text_length = 69,
	.ascii_size = 70,
};

static const struct said said_by_14 = {
	.interpreters = 5,
	.next = 8,
	.threads = 9,
	.gil = 15,
	.gil_base = 16,
	.gil_locked = 18,
	.gil_holder = 19,
	.thread_next = 24,
	.thread_interpreter = 25,
	.thread_frame = 26,
	.thread_id = 27,
	.thread_native = 28,
	.previous = 32,
	.code = 33,
	.instr = 34,
	.owner = 36,
	.filename = 40,
	.name = 42,
	.lines = 43,
	.first_line = 44,
	.bytes = 48,
	.type = 51,
	.bytes_size = 75,
	.bytes_data = 76,
	.text_state = 78,
	.text_length = 79,
	.ascii_size = 80,
};

/* A PyInterpreterState is as large as this; other structures fit into PYTHON_PART_MAX. */
#define INTERPRETER_BYTES_MAX (4u << 20)

/* Grows *size to have a field. False: it would be too far away. */
static bool take(uint64_t offset, uint32_t bytes, uint32_t *to, uint32_t *size)
{
	if (offset > PYTHON_PART_MAX - bytes)
		return false;
	*to = (uint32_t)offset;
	if (*size < offset + bytes)
		*size = (uint32_t)offset + bytes;
	return true;
}

static bool take_far(uint64_t offset, uint32_t *to)
{
	*to = (uint32_t)offset;
	return offset < INTERPRETER_BYTES_MAX;
}

static bool take_interpreter(struct python_layout *to, const uint64_t *words,
			     const struct said *said)
{
	uint64_t base = words[said->gil_base];

	to->has_own_gil = true;
	return take_far(words[said->interpreters], &to->runtime_interpreters) &&
	       take_far(words[said->next], &to->interpreter_next) &&
	       take_far(words[said->threads], &to->interpreter_threads) &&
	       take_far(words[said->gil], &to->gil) &&
	       take_far(words[said->gil_locked] - base, &to->gil_locked) &&
	       take_far(words[said->gil_holder] - base, &to->gil_holder);
}

static bool take_thread(struct python_layout *to, const uint64_t *words, const struct said *said)
{
	uint32_t *size = &to->thread_size;

	return take(words[said->thread_next], 8, &to->thread_next, size) &&
	       take(words[said->thread_interpreter], 8, &to->thread_interpreter, size) &&
	       take(words[said->thread_frame], 8, &to->thread_frame, size) &&
	       take(words[said->thread_id], 8, &to->thread_id, size) &&
	       take(words[said->thread_native], 8, &to->thread_native, size);
}

static bool take_frame(struct python_layout *to, const uint64_t *words, const struct said *said)
{
	uint32_t *size = &to->frame_size;

	return take(words[said->previous], 8, &to->frame_previous, size) &&
	       take(words[said->code], 8, &to->frame_code, size) &&
	       take(words[said->instr], 8, &to->frame_instr, size) &&
	       take(words[said->owner], 1, &to->frame_owner, size);
}

static bool take_code(struct python_layout *to, const uint64_t *words, const struct said *said)
{
	uint32_t *size = &to->code_size, unused = 0;

	return take(words[said->filename], 8, &to->code_filename, size) &&
	       take(words[said->name], 8, &to->code_name, size) &&
	       take(words[said->lines], 8, &to->code_lines, size) &&
	       take(words[said->first_line], 4, &to->code_first_line, size) &&
	       take(words[said->bytes], 8, &to->code_bytes, &unused);
}

/* Text that is not ASCII has two words more (its UTF-8). */
static bool take_objects(struct python_layout *to, const uint64_t *words, const struct said *said)
{
	to->ascii_text = (uint32_t)words[said->ascii_size];
	to->other_text = to->ascii_text + 16;
	return words[said->type] == PYTHON_OBJECT_TYPE &&
	       words[said->bytes_size] == PYTHON_VAR_SIZE &&
	       words[said->bytes_data] == PYTHON_BYTES_DATA &&
	       words[said->text_state] == PYTHON_TEXT_STATE &&
	       words[said->text_length] == PYTHON_TEXT_LENGTH && words[said->ascii_size] == 40;
}

static int ask(struct python_layout *layout, const struct python_memory *memory, uint32_t minor,
	       uint64_t runtime)
{
	const struct said *said = minor == 13 ? &said_by_13 : &said_by_14;
	uint64_t words[WORDS_MAX];

	if (!memory_read(memory, runtime, words, sizeof(words)))
		return -EIO;
	/* The third is whether it is free-threaded. */
	if (memcmp(words, COOKIE, sizeof(words[0])) != 0 || words[1] >> 16 != (0x300 | minor) ||
	    words[2])
		return -ENOTSUP;
	*layout = (struct python_layout){.minor = minor, .lines = PYTHON_LINES_LOCATIONS};
	/* From 3.14 bits of a reference say how it is counted. */
	layout->code_mask = minor == 13 ? UINT64_MAX : ~(uint64_t)3;
	return take_interpreter(layout, words, said) && take_thread(layout, words, said) &&
			       take_frame(layout, words, said) && take_code(layout, words, said) &&
			       take_objects(layout, words, said)
		       ? 0
		       : -ENOTSUP;
}

int python_layout_find(struct python_layout *layout, const struct python_memory *memory,
		       uint32_t minor, uint64_t runtime)
{
	if (minor == 13 || minor == 14)
		return ask(layout, memory, minor, runtime);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].minor != minor)
			continue;
		*layout = known[i];
		layout->code_mask = UINT64_MAX;
		return 0;
	}
	return -ENOTSUP;
}
