/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "line.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void line_stop(const struct line *line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%u: ", line->path, line->number);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

const char *line_take(struct line *line, const char *key)
{
	for (int i = 0; i < line->count; i++) {
		if (strcmp(line->fields[i].key, key) == 0) {
			line->fields[i].used = true;
			return line->fields[i].value;
		}
	}
	return NULL;
}

const char *line_take_text(struct line *line, const char *key, const char *fallback)
{
	const char *value = line_take(line, key);

	return value ? value : fallback;
}

uint64_t line_parse_number(const struct line *line, const char *text, char **end)
{
	uint64_t value;

	errno = 0;
	value = (uint64_t)strtoull(text, end, 0);
	if (errno || *end == text)
		line_stop(line, "not a number: %s", text);
	return value;
}

uint64_t line_take_number(struct line *line, const char *key, uint64_t fallback)
{
	const char *text = line_take(line, key);
	uint64_t value;
	char *end;

	if (!text)
		return fallback;
	value = line_parse_number(line, text, &end);
	if (*end)
		line_stop(line, "not a number: %s", text);
	return value;
}

/* A number of nanoseconds with an optional unit. */
uint64_t line_parse_time(const struct line *line, const char *text, char **end)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	uint64_t value = line_parse_number(line, text, end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t length = strlen(units[i].unit);

		if (strncmp(*end, units[i].unit, length) == 0) {
			*end += length;
			return value * units[i].ns;
		}
	}
	return value;
}

uint64_t line_take_time(struct line *line, const char *key, uint64_t fallback)
{
	const char *text = line_take(line, key);
	uint64_t value;
	char *end;

	if (!text)
		return fallback;
	value = line_parse_time(line, text, &end);
	if (*end)
		line_stop(line, "not a time: %s", text);
	return value;
}

/* Index of the field's value in names, which ends with NULL. */
uint32_t line_take_name(struct line *line, const char *key, const char *const *names)
{
	const char *text = line_take(line, key);

	for (uint32_t i = 0; text && names[i]; i++) {
		if (strcmp(names[i], text) == 0)
			return i;
	}
	if (text)
		line_stop(line, "%s: unknown: %s", key, text);
	return 0;
}

static void add_byte(struct line *line, char byte)
{
	if (line->used == sizeof(line->storage))
		line_stop(line, "line too long");
	line->storage[line->used++] = byte;
}

/* The byte after a backslash: \n, \t, \xHH, or itself. */
static char read_escape(struct line *line, const char **position)
{
	char digits[3] = {0};
	char byte = *(*position)++;

	switch (byte) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'x':
		if (!isxdigit((unsigned char)(*position)[0]) ||
		    !isxdigit((unsigned char)(*position)[1]))
			line_stop(line, "want \\xHH");
		memcpy(digits, *position, 2);
		*position += 2;
		return (char)strtoul(digits, NULL, 16);
	default:
		return byte;
	}
}

/* A word, with "quoted parts" and @N, which is N times the letter x. Copied into the storage. */
static char *read_word(struct line *line, const char **position)
{
	char *word = line->storage + line->used;
	bool quoted = false;

	for (; **position && (quoted || !isspace((unsigned char)**position));) {
		char byte = *(*position)++;

		if (byte == '"') {
			quoted = !quoted;
		} else if (byte == '\\' && **position) {
			add_byte(line, read_escape(line, position));
		} else if (byte == '@' && !quoted) {
			char *end;
			unsigned long count = strtoul(*position, &end, 10);

			*position = end;
			while (count--)
				add_byte(line, 'x');
		} else {
			add_byte(line, byte);
		}
	}
	if (quoted)
		line_stop(line, "a quote is missing");
	add_byte(line, '\0');
	return word;
}

const char *line_read(struct line *line, const char *text)
{
	char *type = NULL;

	line->number++;
	line->count = 0;
	line->used = 0;
	for (;;) {
		char *word, *equals;

		text += strspn(text, " \t\n");
		if (!*text || *text == '#')
			return type;
		word = read_word(line, &text);
		if (!type) {
			type = word;
			continue;
		}
		equals = strchr(word, '=');
		if (!equals || line->count == LINE_FIELDS_MAX)
			line_stop(line, "want KEY=VALUE: %s", word);
		*equals = '\0';
		line->fields[line->count++] = (struct field){word, equals + 1, false};
	}
}

void line_check_used(const struct line *line)
{
	for (int i = 0; i < line->count; i++) {
		if (!line->fields[i].used)
			line_stop(line, "unknown key: %s", line->fields[i].key);
	}
}
