/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One line of an .events file: a type and KEY=VALUE fields. Mistakes end the program. */
#ifndef FBT_TEST_LINE_H
#define FBT_TEST_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LINE_FIELDS_MAX 32

struct field {
	char *key;
	char *value;
	bool used;
};

struct line {
	const char *path;
	unsigned int number;
	struct field fields[LINE_FIELDS_MAX];
	int count;
	char storage[1 << 16];
	size_t used;
};

void line_stop(const struct line *line, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* Splits text, the next line of the file. Its type, or NULL if it is empty or a comment. */
const char *line_read(struct line *line, const char *text);

/* Ends the program if a field was not used. */
void line_check_used(const struct line *line);

const char *line_take(struct line *line, const char *key); /* NULL if absent */
const char *line_take_text(struct line *line, const char *key, const char *fallback);
uint64_t line_take_number(struct line *line, const char *key, uint64_t fallback);

/* A number followed by ns (or nothing), us, ms or s; nanoseconds. */
uint64_t line_take_time(struct line *line, const char *key, uint64_t fallback);

/* Index of the value in names, which ends with NULL; 0 if absent. */
uint32_t line_take_name(struct line *line, const char *key, const char *const *names);

uint64_t line_parse_number(const struct line *line, const char *text, char **end);
uint64_t line_parse_time(const struct line *line, const char *text, char **end);

#endif
