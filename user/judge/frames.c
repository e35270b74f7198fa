/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/frames.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"

#define NAME_COLUMNS 64

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_script(const struct code *code)
{
	return code && code->record.header.flags & FBT_CODE_SCRIPT;
}

/*
 * Of libc, its loader, the kernel's vDSO, the C++ runtime, and our own library, through which a
 * Python step is called: by the names of their files.
 */
static bool is_runtime(const struct code *code)
{
	static const char *const names[] = {"libc.so.",	    "libc-2.",	    "ld-linux",
					    "ld-musl",	    "libc.musl",    "libpthread",
					    "libstdc++.so", "libgcc_s.so",  "libc++.so",
					    "[vdso]",	    "libferrum_py", "memfd:libferrum"};
	const char *name = code && !is_script(code) ? file_name(code->path) : "";

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

/* "model.py"; of a file whose name only says that it is a package's, with its folder. */
static const char *script_name(const char *path)
{
	const char *name = file_name(path), *folder = name;

	if (strncmp(name, "__", 2) != 0 || name == path)
		return name;
	for (folder--; folder > path && folder[-1] != '/';)
		folder--;
	return folder;
}

const char *frames_name(const struct code *code, char name[FRAMES_NAME])
{
	char cut[FRAMES_NAME / 2];

	if (!code) {
		snprintf(name, FRAMES_NAME, "?");
	} else if (code->record.header.flags & FBT_CODE_SCRIPT) {
		char path[FRAMES_NAME / 4];

		shorten_text(path, sizeof(path), script_name(code->path), NAME_COLUMNS / 2);
		shorten_text(cut, sizeof(cut), code->function, NAME_COLUMNS);
		if (code->record.address)
			snprintf(name, FRAMES_NAME, "%s (%s:%" PRIu64 ")", cut, path,
				 (uint64_t)code->record.address);
		else
			snprintf(name, FRAMES_NAME, "%s (%s)", cut, path);
	} else if (*code->function) {
		cut_arguments(code->function, cut, sizeof(cut));
		shorten_text(name, FRAMES_NAME, cut, NAME_COLUMNS);
	} else if (*code->path) {
		shorten_text(cut, sizeof(cut), file_name(code->path), NAME_COLUMNS / 2);
		snprintf(name, FRAMES_NAME, "%s+0x%" PRIx64, cut, (uint64_t)code->record.address);
	} else {
		snprintf(name, FRAMES_NAME, "generated code");
	}
	return name;
}

/* A function, how often it is on the stack in a row, and where that ends. */
struct run {
	char name[FRAMES_NAME];
	uint32_t times;
	uint32_t next;
};

static void take_run(const struct fbt_stack *stack, const struct window *window, uint32_t at,
		     uint32_t end, struct run *run)
{
	char other[FRAMES_NAME];

	frames_name(window__code(window, stack->codes[at]), run->name);
	run->times = 1;
	while (at + run->times < end &&
	       !strcmp(run->name,
		       frames_name(window__code(window, stack->codes[at + run->times]), other)))
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
	line_add(line, "%s", run->name);
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

/*
 * Which of the frames up to *end are told: neither those of libc that made the call nor those that
 * began the thread.
 */
static void find_told(const struct fbt_stack *stack, const struct window *window, uint32_t *begin,
		      uint32_t *end)
{
	*begin = 0;
	while (*begin + 1 < *end && is_inner(stack, window, *begin))
		++*begin;
	while (!is_cut(stack) && *end > *begin + 1 &&
	       is_outer(window__code(window, stack->codes[*end - 1])))
		--*end;
}

static bool is_unnamed(const struct code *code)
{
	return code && !*code->function && *code->path;
}

/* A function that calls itself returns to the same place each time. */
static bool was_told(const struct fbt_stack *stack, uint32_t begin, uint32_t at)
{
	for (uint32_t i = begin; i < at; i++)
		if (stack->codes[i] == stack->codes[at])
			return true;
	return false;
}

void frames_list_unnamed(const struct fbt_stack *stack, const struct window *window, char *text,
			 size_t size)
{
	struct line line = {text, size, 0};
	uint32_t begin, end = stack->count;
	char place[FRAMES_NAME + 2 * FRAMES_ID_MAX];

	*text = '\0';
	find_told(stack, window, &begin, &end);
	for (uint32_t at = begin; at < end; at++) {
		const struct code *code = window__code(window, stack->codes[at]);
		size_t length;

		if (!is_unnamed(code) || was_told(stack, begin, at))
			continue;
		frames_name(code, place);
		length = strlen(place);
		if (*code->build_id)
			length +=
				(size_t)snprintf(place + length, sizeof(place) - length,
						 " (BuildId: %.*s)", FRAMES_ID_MAX, code->build_id);
		if (line.length + length + 2 >= size)
			return;
		line_add(&line, "%s%s", line.length ? ", " : "", place);
	}
}

void frames_describe(const struct fbt_stack *stack, const struct window *window, char *text,
		     size_t size)
{
	frames_describe_some(stack, window, FRAMES_SHOWN, text, size);
}

static bool starts_with_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, words[i], strlen(words[i])))
			return true;
	return false;
}

static bool is_interpreter(const struct code *code)
{
	static const char *const names[] = {"python3.", "libpython3."};
	const char *name;

	if (!code || is_script(code))
		return false;
	name = file_name(code->path);
	/* A copy of the program, as venv makes, has the name by which it is called. */
	return !strcmp(name, "python3") || !strcmp(name, "python") ||
	       starts_with_one_of(name, names, sizeof(names) / sizeof(names[0]));
}

/* Of an interpreter: it only calls the next function. */
static bool is_call_path(const struct code *code)
{
	/* Without a name it says nothing either. */
	static const char *const names[] = {"PyObject_",   "_PyObject_",	"PyVectorcall_",
					    "_PyEval_",	   "_PyVectorcall",	"cfunction_",
					    "vectorcall_", "method_vectorcall", "object_vacall"};

	return is_interpreter(code) &&
	       (!*code->function ||
		starts_with_one_of(code->function, names, sizeof(names) / sizeof(names[0])));
}

/* It stands for functions of the script that are not known. */
static bool is_evaluation(const struct code *code)
{
	return is_interpreter(code) && !strncmp(code->function, "_PyEval_EvalFrameDefault", 24);
}

/*
 * Leaves out what an interpreter calls functions of its script through: all of it between and
 * outside of these, and what calls its own function from the innermost one.
 */
static void cut_interpreter(const struct fbt_stack *stack, const struct window *window,
			    struct fbt_stack *to)
{
	uint32_t first = 0;

	*to = *stack;
	while (first < stack->count && !is_script(window__code(window, stack->codes[first])))
		first++;
	if (first == stack->count || stack->header.flags & FBT_STACK_APART)
		return;
	to->count = 0;
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct code *code = window__code(window, stack->codes[i]);
		bool is_left_out = i < first ? i && is_call_path(code)
					     : is_interpreter(code) && !is_evaluation(code);

		if (!is_left_out)
			to->codes[to->count++] = stack->codes[i];
	}
}

/* How many runs stand before the first one of a script; 0 also if there is none. */
static uint32_t count_native(const struct fbt_stack *stack, const struct window *window,
			     uint32_t begin, uint32_t end)
{
	uint32_t count = 0;
	struct run run;

	for (uint32_t at = begin; at < end; at = run.next, count++) {
		if (is_script(window__code(window, stack->codes[at])))
			return count;
		take_run(stack, window, at, end, &run);
	}
	return 0;
}

/*
 * Of more runs than most the first ones and the last one; where native functions alone would fill
 * that, half of these and then the script's.
 */
static void add_part(struct line *line, const struct fbt_stack *stack, const struct window *window,
		     uint32_t begin, uint32_t end, uint32_t most)
{
	uint32_t runs = count_runs(stack, window, begin, end), number = 0, left = most;
	uint32_t native = count_native(stack, window, begin, end);
	bool is_gap = false;
	struct run run;

	for (uint32_t at = begin; at < end; at = run.next, number++) {
		bool is_left_out =
			runs > most && number + 1 < runs &&
			(left < 2 || (native > most / 2 && number >= most / 2 && number < native));

		take_run(stack, window, at, end, &run);
		if (!number && stack->header.flags & FBT_STACK_WAKER)
			add_offset(&run, window__code(window, stack->codes[at]));
		if (!is_left_out) {
			line_add(line, "%s", number ? " <- " : "");
			add_run(line, &run);
			left--;
		} else if (!is_gap) {
			line_add(line, " <- ...");
		}
		is_gap = is_left_out;
	}
}

static uint32_t find_apart(const struct fbt_stack *stack, const struct window *window)
{
	uint32_t at = 0;

	if (!(stack->header.flags & FBT_STACK_APART))
		return stack->count;
	while (at < stack->count && !is_script(window__code(window, stack->codes[at])))
		at++;
	return at;
}

static void add_apart(struct line *line, const struct fbt_stack *stack, const struct window *window,
		      uint32_t at, uint32_t most)
{
	if (at == stack->count)
		return;
	line_add(line, "; Python: ");
	add_part(line, stack, window, at, stack->count, most);
	line_add(line, stack->header.flags & FBT_STACK_MOVED
			       ? " (it ran meanwhile: what that called is not known)"
			       : " (not joined: the two do not fit)");
}

void frames_describe_some(const struct fbt_stack *whole, const struct window *window, uint32_t most,
			  char *text, size_t size)
{
	struct line line = {text, size, 0};
	struct fbt_stack stack;
	uint32_t begin, end, apart;

	*text = '\0';
	cut_interpreter(whole, window, &stack);
	end = apart = find_apart(&stack, window);
	find_told(&stack, window, &begin, &end);
	add_part(&line, &stack, window, begin, end, most);
	if (stack.header.flags & FBT_STACK_LOST)
		line_add(&line, " <- ? (its caller could not be found)");
	else if (stack.header.flags & FBT_STACK_CUT)
		line_add(&line, " <- ... (the stack is cut off)");
	if (stack.header.flags & FBT_STACK_GUESSED)
		line_add(&line, " (by frame pointers)");
	if (stack.header.flags & FBT_STACK_RAN)
		line_add(&line, " (it ran on: some may be wrong)");
	add_apart(&line, &stack, window, apart, most);
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

bool frames_is_kind(const struct code *code, const char *kind)
{
	/* Before CPython 3.11 a function does not know the class that it is in. */
	if (is_script(code))
		return !strcmp(last_part(code->function), last_part(kind));
	return !strcmp(code->function, kind);
}

uint32_t frames_of_step(const struct window *window, const char *kind, const uint32_t *codes,
			uint32_t count)
{
	for (uint32_t i = count; i; i--) {
		const struct code *code = window__code(window, codes[i - 1]);

		if (is_script(code) && frames_is_kind(code, kind))
			return i;
	}
	return count;
}
