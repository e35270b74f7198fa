/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/folded_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/text.h"
#include "judge/frames.h"

/* The rest of a longer name is cut off: template arguments can be of any length. */
#define NAME_BYTES_MAX 1024

struct folded_line {
	char *text;
	uint64_t ns;
};

struct folded_table {
	VEC(struct folded_line) lines; /* by text */
	size_t bytes;
};

struct folded_table *folded_table__new(void)
{
	return calloc(1, sizeof(struct folded_table));
}

void folded_table__free(struct folded_table *table)
{
	if (!table)
		return;
	vec_for_each (line, &table->lines)
		free(line->text);
	vec_free(&table->lines);
	free(table);
}

/*
 * A name without what readers take for the end of a frame or of a line, what is malformed, and what
 * steers a terminal.
 */
static void put_name(FILE *out, const char *name)
{
	size_t used = 0, size, bad = 0;

	if (!*name)
		putc_unlocked('?', out);
	for (; *name; name += size ? size : bad) {
		size = utf8_length(name, &bad);
		used += size ? size : 1;
		if (used > NAME_BYTES_MAX)
			return;
		if (*name == ';')
			putc_unlocked(':', out);
		else if (!size || utf8_steers_terminal(utf8_point(name, size)))
			putc_unlocked('?', out);
		else
			fwrite(name, size, 1, out);
	}
}

static void put_frame(FILE *out, const char *name)
{
	putc_unlocked(';', out);
	put_name(out, name);
}

static void put_code(FILE *out, const struct code *code)
{
	const char *slash;

	if (!code) {
		put_frame(out, "[unknown]");
	} else if (*code->function) {
		put_frame(out, code->function);
	} else if (*code->path) {
		slash = strrchr(code->path, '/');
		put_frame(out, slash ? slash + 1 : code->path);
		fprintf(out, "+0x%" PRIx64, (uint64_t)code->record.address);
	} else {
		put_frame(out, "[generated code]");
	}
}

static void put_marks(FILE *out, const struct folded_stack *stack)
{
	if (stack->flags & FBT_STACK_LOST)
		put_frame(out, "[caller not found]");
	else if (stack->flags & FBT_STACK_CUT)
		put_frame(out, "[cut off]");
	if (stack->flags & FBT_STACK_GUESSED)
		put_frame(out, "[by frame pointers]");
	if (stack->flags & FBT_STACK_RAN)
		put_frame(out, "[ran meanwhile]");
}

/* The step function itself is the outermost frame of a whole stack: it is not said twice. */
static uint32_t count_callees(const struct window *window, const struct folded_stack *stack)
{
	const struct code *code =
		stack->count ? window__code(window, stack->codes[stack->count - 1]) : NULL;

	return code && frames_is_kind(code, stack->kind) ? stack->count - 1 : stack->count;
}

static void put_end(FILE *out, const struct folded_stack *stack)
{
	fputs(";[", out);
	put_name(out, stack->end);
	putc_unlocked(']', out);
}

static void put_stack(FILE *out, const struct window *window, const struct folded_stack *stack)
{
	put_name(out, stack->kind);
	put_marks(out, stack);
	for (uint32_t i = count_callees(window, stack); i; i--)
		put_code(out, window__code(window, stack->codes[i - 1]));
	put_end(out, stack);
}

/* Where the lines with that text are, or would be. */
static size_t place_of(const struct folded_table *table, const char *text)
{
	return first_index(i, table->lines.count, strcmp(table->lines.items[i].text, text) >= 0);
}

static bool has_line(const struct folded_table *table, size_t at, const char *text)
{
	return at < table->lines.count && !strcmp(table->lines.items[at].text, text);
}

/* The line for what finds no room; NULL: -ENOMEM. */
static char *make_rest(const struct folded_stack *stack)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	put_name(out, stack->kind);
	put_frame(out, "[more stacks]");
	put_end(out, stack);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static int add_line(struct folded_table *table, size_t at, char *text, uint64_t ns)
{
	struct folded_line line = {text, ns};
	int err;

	if (has_line(table, at, text)) {
		table->lines.items[at].ns = add_saturating(table->lines.items[at].ns, ns);
		free(text);
		return 0;
	}
	err = vec_insert(&table->lines, at, line);
	if (err)
		free(text);
	else
		table->bytes += strlen(text) + sizeof(line);
	return err;
}

int folded_table__add(struct folded_table *table, const struct window *window,
		      const struct folded_stack *stack)
{
	char *text = NULL;
	size_t size = 0, at;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	put_stack(out, window, stack);
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	at = place_of(table, text);
	if (!has_line(table, at, text) && table->bytes + size > FOLDED_BYTES_MAX) {
		free(text);
		text = make_rest(stack);
		if (!text)
			return -ENOMEM;
		at = place_of(table, text);
	}
	return add_line(table, at, text, stack->ns);
}

int folded_table__write(const struct folded_table *table, FILE *out)
{
	errno = 0;
	vec_for_each (line, &table->lines)
		fprintf(out, "%s %" PRIu64 "\n", line->text, line->ns / NS_PER_US);
	if (!fflush(out) && !ferror(out))
		return 0;
	return errno ? -errno : -EIO;
}
