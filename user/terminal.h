/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Lines of data for a terminal (log.h is for messages): the one way there for text from outside. A
 * test holds all other prints against a list of what may be.
 */
#ifndef FBT_TERMINAL_H
#define FBT_TERMINAL_H

#include <stdarg.h>
#include <stdio.h>

/*
 * One line, escaped as a whole (log_escape), a newline behind it. Without memory nothing is
 * written. Errors show in ferror(out).
 */
void terminal_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void terminal_line_args(FILE *out, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* What is formatted, escaped, to be freed; NULL: no memory. */
char *terminal_text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/*
 * How wide text on out may be: the columns of the terminal it is, at least 60, at most most; most
 * where it is none.
 */
size_t terminal_columns(FILE *out, size_t most);

#endif
