/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Figures and names as the report and the status line show them: ASCII units, 3 digits. Pure. */
#ifndef FBT_BASE_FORMAT_H
#define FBT_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FORMAT_MAX 24

/* Each writes to buffer and returns it. */
const char *format_time(char buffer[FORMAT_MAX], double ns); /* "78 ns", "7.90 ms", "10.0 s" */
const char *format_count(char buffer[FORMAT_MAX], uint64_t count);   /* "1,204", "12.3 M" */
const char *format_bytes(char buffer[FORMAT_MAX], uint64_t bytes);   /* "23.0 MiB" */
const char *format_percent(char buffer[FORMAT_MAX], double percent); /* "11.2 %", "<0.1 %" */
/* The same of a part of something, as far as it can be one: "over 100 %" */
const char *format_part(char buffer[FORMAT_MAX], double percent);
const char *format_most(char buffer[FORMAT_MAX], double percent); /* "up to 12.0 %", the same */
const char *format_number(char buffer[FORMAT_MAX], double value); /* 3 digits, whole from 100 on */

/* CLOCK_REALTIME ns as UTC, "2026-11-23T18:57:01.123456Z". Writes and returns buffer. */
#define FORMAT_UTC_MAX 48
const char *format_utc(char buffer[FORMAT_UTC_MAX], uint64_t realtime_ns);

/* The same text as an argument of a call. It lives until the enclosing block ends. */
#define FORMAT_TIME(ns)		format_time((char[FORMAT_MAX]){""}, (double)(ns))
#define FORMAT_COUNT(count)	format_count((char[FORMAT_MAX]){""}, count)
#define FORMAT_BYTES(bytes)	format_bytes((char[FORMAT_MAX]){""}, bytes)
#define FORMAT_PERCENT(percent) format_percent((char[FORMAT_MAX]){""}, percent)
#define FORMAT_PART(percent)	format_part((char[FORMAT_MAX]){""}, percent)
#define FORMAT_MOST(percent)	format_most((char[FORMAT_MAX]){""}, percent)
#define FORMAT_NUMBER(value)	format_number((char[FORMAT_MAX]){""}, value)

/* Text that grows in a buffer of size bytes, which holds "" at first, until it is full. */
struct line {
	char *text;
	size_t size;
	size_t length;
};

/* Appends; what does not fit is cut off. */
void line_add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends "once", "2 times". */
void line_add_times(struct line *line, uint64_t count);

/* The ending of a noun after its number. */
static inline const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* part of whole, in percent; 0 if whole is 0. */
double percent_of(double part, double whole);

/*
 * Escaped copy of text in at most columns characters (at least 8): what is too long loses its
 * middle, shown as "...". size bytes at to.
 */
const char *shorten_text(char *to, size_t size, const char *text, size_t columns);

/* In the name of a function that was found by a text: NAME (by the text 'TEXT'). */
#define NAME_BY_TEXT " (by the text '"

/*
 * Name of a function in at most columns characters. A long one loses the text that it was found by,
 * and then becomes its last part without closures: "<a::B as c::D>::decode::{{closure}}" is
 * "decode"; then as shorten_text.
 */
const char *shorten_name(char *to, size_t size, const char *name, size_t columns);

/*
 * Lines of data for a terminal; messages go through log.h. Text from outside reaches a terminal
 * only by these functions: tests/lint/terminal.sh has a list of all other prints.
 *
 * One line, escaped as a whole (log_escape), followed by a newline. Without memory nothing is
 * written. Errors show in ferror(out).
 */
void terminal_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What is formatted, escaped, to be freed; NULL: no memory. */
char *terminal_text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/*
 * How wide text on out may be: the columns of its terminal, from 60 to most; most if out is not a
 * terminal.
 */
size_t terminal_columns(FILE *out, size_t most);

#endif
