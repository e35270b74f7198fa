/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/frames.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"

#define NAME_COLUMNS 64
#define NAME_BYTES   512

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Of libc, its loader, and the C++ runtime: by the names of their files. */
static bool is_runtime(const struct code *code)
{
	static const char *const names[] = {"libc.so.",	    "libc-2.",	   "ld-linux",
					    "ld-musl",	    "libc.musl",   "libpthread",
					    "libstdc++.so", "libgcc_s.so", "libc++.so"};
	const char *name = code ? file_name(code->path) : "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool is_word(char letter)
{
	return isalnum((unsigned char)letter) || letter == '_';
}

/* The name ends with the word "operator", after which < is no bracket. */
static bool ends_with_operator(const char *name, size_t length)
{
	static const char word[] = "operator";
	size_t size = sizeof(word) - 1;

	while (length && name[length - 1] == '<')
		length--;
	return length >= size && !memcmp(name + length - size, word, size) &&
	       (length == size || !is_word(name[length - size - 1]));
}

/*
 * Cuts "<…>" after a word: arguments of a template, or of a generic type, and "::<…>" of a generic
 * function. "<T as Trait>::call" stays.
 */
static void cut_arguments(const char *name, char *to, size_t size)
{
	size_t length = 0;
	int depth = 0;

	for (const char *at = name; *at && length + 1 < size; at++) {
		bool is_arrow = at > name && *at == '>' && at[-1] == '-';

		if (depth) {
			depth += *at == '<';
			depth -= *at == '>' && !is_arrow;
			continue;
		}
		if (*at == '<' && length && !ends_with_operator(to, length) &&
		    (is_word(to[length - 1]) || to[length - 1] == ':')) {
			while (length && to[length - 1] == ':')
				length--;
			depth = 1;
			continue;
		}
		to[length++] = *at;
	}
	to[length] = '\0';
}

static const char *name_of(const struct code *code, char name[NAME_BYTES])
{
	char cut[NAME_BYTES / 2];

	if (!code) {
		snprintf(name, NAME_BYTES, "?");
	} else if (code->record.header.flags & FBT_CODE_SCRIPT) {
		char path[NAME_BYTES / 4];

		shorten_text(path, sizeof(path), file_name(code->path), NAME_COLUMNS / 2);
		shorten_text(cut, sizeof(cut), code->function, NAME_COLUMNS);
		snprintf(name, NAME_BYTES, "%s (%s:%" PRIu64 ")", cut, path,
			 (uint64_t)code->record.address);
	} else if (*code->function) {
		cut_arguments(code->function, cut, sizeof(cut));
		shorten_text(name, NAME_BYTES, cut, NAME_COLUMNS);
	} else if (*code->path) {
		shorten_text(cut, sizeof(cut), file_name(code->path), NAME_COLUMNS / 2);
		snprintf(name, NAME_BYTES, "%s+0x%" PRIx64, cut, (uint64_t)code->record.address);
	} else {
		snprintf(name, NAME_BYTES, "generated code");
	}
	return name;
}

/* A function, how often it is on the stack in a row, and where that ends. */
struct run {
	char name[NAME_BYTES];
	uint32_t times;
	uint32_t next;
};

static void take_run(const struct fbt_stack *stack, const struct window *window, uint32_t at,
		     uint32_t end, struct run *run)
{
	char other[NAME_BYTES];

	name_of(window__code(window, stack->codes[at]), run->name);
	run->times = 1;
	while (at + run->times < end &&
	       !strcmp(run->name,
		       name_of(window__code(window, stack->codes[at + run->times]), other)))
		run->times++;
	run->next = at + run->times;
}

/* Which of the calls of that function it is. */
static void add_offset(struct run *run, const struct code *code)
{
	size_t length = strlen(run->name);

	if (code && code->record.offset)
		snprintf(run->name + length, sizeof(run->name) - length, "+0x%" PRIx64,
			 (uint64_t)code->record.offset);
}

static void add_run(struct line *line, const struct run *run)
{
	line_add(line, "%s%s", line->length ? " <- " : "", run->name);
	if (run->times > 1)
		line_add(line, " x%" PRIu32, run->times);
}

static uint32_t count_runs(const struct fbt_stack *stack, const struct window *window,
			   uint32_t begin, uint32_t end)
{
	uint32_t count = 0;
	struct run run;

	for (uint32_t at = begin; at < end; at = run.next, count++)
		take_run(stack, window, at, end, &run);
	return count;
}

static bool is_cut(const struct fbt_stack *stack)
{
	return stack->header.flags & (FBT_STACK_CUT | FBT_STACK_LOST);
}

/* Of the runtime, or what it calls: the kernel's code for clocks is in no file. */
static bool is_inner(const struct fbt_stack *stack, const struct window *window, uint32_t at)
{
	const struct code *code = window__code(window, stack->codes[at]);

	if (code && !*code->function && !*code->path)
		code = window__code(window, stack->codes[at + 1]);
	return is_runtime(code);
}

/* What leads to a thread's own first function, or to main(). */
static bool is_outer(const struct code *code)
{
	return is_runtime(code) || (code && !strcmp(code->function, "_start"));
}

void frames_describe(const struct fbt_stack *stack, const struct window *window, char *text,
		     size_t size)
{
	frames_describe_some(stack, window, FRAMES_SHOWN, text, size);
}

void frames_describe_some(const struct fbt_stack *stack, const struct window *window, uint32_t most,
			  char *text, size_t size)
{
	struct line line = {text, size, 0};
	uint32_t begin = 0, end = stack->count, runs, shown = 0;
	struct run run;

	*text = '\0';
	while (begin + 1 < end && is_inner(stack, window, begin))
		begin++;
	while (!is_cut(stack) && end > begin + 1 &&
	       is_outer(window__code(window, stack->codes[end - 1])))
		end--;
	runs = count_runs(stack, window, begin, end);
	for (uint32_t at = begin; at < end; at = run.next) {
		take_run(stack, window, at, end, &run);
		if (!shown++ && stack->header.flags & FBT_STACK_WAKER)
			add_offset(&run, window__code(window, stack->codes[at]));
		if (runs <= most || shown < most || shown == runs)
			add_run(&line, &run);
		else if (shown == most)
			line_add(&line, " <- ...");
	}
	if (stack->header.flags & FBT_STACK_LOST)
		line_add(&line, " <- ? (its caller could not be found)");
	else if (stack->header.flags & FBT_STACK_CUT)
		line_add(&line, " <- ... (the stack is cut off)");
	if (stack->header.flags & FBT_STACK_GUESSED)
		line_add(&line, " (by frame pointers)");
}
