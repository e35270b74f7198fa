/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Stacks as numbers of a trace in Perfetto's format: Mapping, Frame and Callstack. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "judge/frames.h"
#include "output/perfetto_file.h"

/* From protos/perfetto/trace/profiling/profile_common.proto. */
enum { INTERNED_BYTES = 2 };
enum { MAPPING_BUILD_ID = 2, MAPPING_PATH = 7 };
enum {
	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	FRAME_PC = 4,
	FRAME_SOURCE = 5,
	FRAME_LINE = 6,
	FRAME_KIND = 7,
};
enum { KIND_NATIVE = 1, KIND_INTERPRETED = 3 };
enum { CALLSTACK_FRAMES = 2 };

#define BUILD_ID_BYTES 64

/* Names longer than that are cut, as are paths. */
#define NAME_BYTES 1024

/* The frames of a stack, and those that stand for what is not known of it. */
#define FRAMES_MAX (FBT_STACK_FRAMES + 4)

static uint64_t build_id_number(struct perfetto_file *file, const char *digits)
{
	unsigned char bytes[BUILD_ID_BYTES];
	size_t count = 0, begun;
	bool is_new;
	uint64_t number;

	for (; count < BUILD_ID_BYTES && isxdigit((unsigned char)digits[2 * count]) &&
	       isxdigit((unsigned char)digits[2 * count + 1]);
	     count++) {
		unsigned int byte = 0;

		sscanf(digits + 2 * count, "%2x", &byte);
		bytes[count] = (unsigned char)byte;
	}
	if (!count)
		return 0;
	number = perfetto_file_number(file, PERFETTO_BUILD_ID, digits, &is_new);
	if (!is_new)
		return number;
	begun = perfetto_file_define(file, PERFETTO_BUILD_ID, number);
	proto_message(&file->interned, INTERNED_BYTES, bytes, count);
	proto_end(&file->interned, begun);
	return number;
}

/* A reader needs one for each frame, also where there is no file. */
static uint64_t mapping_number(struct perfetto_file *file, const char *path, const char *build_id)
{
	char key[2 * NAME_BYTES];
	uint64_t number, path_number, id_number;
	bool is_new;
	size_t begun;

	snprintf(key, sizeof(key), "%.*s:%.*s", FRAMES_ID_MAX, build_id, NAME_BYTES, path);
	number = perfetto_file_number(file, PERFETTO_MAPPING, key, &is_new);
	if (!is_new)
		return number;
	path_number = perfetto_file_text(file, PERFETTO_PATH, path);
	id_number = build_id_number(file, build_id);
	begun = perfetto_file_define(file, PERFETTO_MAPPING, number);
	if (id_number)
		proto_uint(&file->interned, MAPPING_BUILD_ID, id_number);
	if (path_number)
		proto_uint(&file->interned, MAPPING_PATH, path_number);
	proto_end(&file->interned, begun);
	return number;
}

/* A frame that is no place in code. */
static uint64_t mark_number(struct perfetto_file *file, const char *name)
{
	bool is_new;
	uint64_t number = perfetto_file_number(file, PERFETTO_FRAME, name, &is_new), function,
		 mapping;
	size_t begun;

	if (!is_new)
		return number;
	function = perfetto_file_text(file, PERFETTO_FUNCTION, name);
	mapping = mapping_number(file, "", "");
	begun = perfetto_file_define(file, PERFETTO_FRAME, number);
	proto_uint(&file->interned, FRAME_FUNCTION, function);
	proto_uint(&file->interned, FRAME_MAPPING, mapping);
	proto_end(&file->interned, begun);
	return number;
}

static void put_function(const struct code *code, char name[NAME_BYTES])
{
	const char *slash = strrchr(code->path, '/');

	if (*code->function)
		snprintf(name, NAME_BYTES, "%s", code->function);
	else if (*code->path)
		snprintf(name, NAME_BYTES, "%s+0x%" PRIx64, slash ? slash + 1 : code->path,
			 (uint64_t)code->record.address);
	else
		snprintf(name, NAME_BYTES, "[generated code]");
}

static void define_frame(struct perfetto_file *file, const struct code *code, uint64_t number)
{
	bool is_script = code->record.header.flags & FBT_CODE_SCRIPT;
	char name[NAME_BYTES];
	uint64_t function, mapping, source = 0;
	struct proto *to = &file->interned;
	size_t begun;

	put_function(code, name);
	function = perfetto_file_text(file, PERFETTO_FUNCTION, name);
	mapping = mapping_number(file, code->path, code->build_id);
	if (is_script)
		source = perfetto_file_text(file, PERFETTO_SOURCE, code->path);
	begun = perfetto_file_define(file, PERFETTO_FRAME, number);
	proto_uint(to, FRAME_FUNCTION, function);
	proto_uint(to, FRAME_MAPPING, mapping);
	/* Of a script the line tells places apart. */
	proto_uint(to, FRAME_PC, code->record.address);
	if (source) {
		proto_uint(to, FRAME_SOURCE, source);
		proto_uint(to, FRAME_LINE, (uint32_t)code->record.address);
	}
	proto_uint(to, FRAME_KIND, is_script ? KIND_INTERPRETED : KIND_NATIVE);
	proto_end(to, begun);
}

static uint64_t frame_number(struct perfetto_file *file, const struct code *code)
{
	char key[16];
	uint64_t number;
	bool is_new;

	if (!code)
		return mark_number(file, "[unknown]");
	/* No name of a mark begins with a digit. */
	snprintf(key, sizeof(key), "%" PRIu32, code->record.id);
	number = perfetto_file_number(file, PERFETTO_FRAME, key, &is_new);
	if (is_new)
		define_frame(file, code, number);
	return number;
}

/* Where functions of a script begin that are not joined with the native ones; count: nowhere. */
static uint32_t find_apart(const struct window *window, const struct fbt_stack *stack)
{
	uint32_t at = 0;

	if (!(stack->header.flags & FBT_STACK_APART))
		return stack->count;
	for (; at < stack->count; at++) {
		const struct code *code = window__code(window, stack->codes[at]);

		if (code && code->record.header.flags & FBT_CODE_SCRIPT)
			break;
	}
	return at;
}

/* From the outermost function inwards. */
static size_t list_frames(struct perfetto_file *file, const struct window *window,
			  const struct fbt_stack *stack, uint64_t frames[FRAMES_MAX])
{
	uint32_t apart = find_apart(window, stack);
	size_t count = 0;

	if (stack->header.flags & FBT_STACK_LOST)
		frames[count++] = mark_number(file, "[caller not found]");
	else if (stack->header.flags & FBT_STACK_CUT)
		frames[count++] = mark_number(file, "[cut off]");
	if (stack->header.flags & FBT_STACK_GUESSED)
		frames[count++] = mark_number(file, "[by frame pointers]");
	if (stack->header.flags & FBT_STACK_RAN)
		frames[count++] = mark_number(file, "[ran meanwhile]");
	for (uint32_t i = stack->count; i; i--) {
		if (i == apart && i < stack->count)
			frames[count++] = mark_number(file, "[not joined]");
		frames[count++] = frame_number(file, window__code(window, stack->codes[i - 1]));
	}
	return count;
}

uint64_t perfetto_file_stack(struct perfetto_file *file, const struct window *window,
			     const struct fbt_stack *stack)
{
	uint64_t frames[FRAMES_MAX], number = 0;
	char key[FRAMES_MAX * 8];
	struct line line = {key, sizeof(key), 0};
	size_t count, begun;
	bool is_new = false, is_whole = stack->count && stack->count <= FBT_STACK_FRAMES;

	*key = '\0';
	count = is_whole ? list_frames(file, window, stack, frames) : 0;
	for (size_t i = 0; i < count; i++) {
		is_whole &= frames[i] != 0;
		line_add(&line, "%" PRIx64 ",", frames[i]);
	}
	if (is_whole)
		number = perfetto_file_number(file, PERFETTO_CALLSTACK, key, &is_new);
	if (stack->count && !number)
		file->lost_stacks++;
	if (!is_new)
		return number;
	begun = perfetto_file_define(file, PERFETTO_CALLSTACK, number);
	for (size_t i = 0; i < count; i++)
		proto_uint(&file->interned, CALLSTACK_FRAMES, frames[i]);
	proto_end(&file->interned, begun);
	return number;
}
