/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Messages to stderr. stdout and files carry data only. */
#ifndef FBT_LOG_H
#define FBT_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_NONE = -1,
	LOG_ERR = 0,
	LOG_WARN = 1,
	LOG_INFO = 2,
	LOG_DEBUG = 3,
	LOG_LIBBPF = 4 /* what libbpf calls debug */
};

/* Lowest level that is dropped + 1; LOG_INFO unless set. The one piece of process-wide state. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/*
 * One line, "ferrum-bpftrace: subject: reason" (errors, warnings) or bare (info); the newline is
 * added, control characters are escaped. A status line that is on the terminal is cleared first.
 * errno stays as it was.
 */
void log_err(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether log_err was called: what failed has been told. */
bool log_has_told(void);

/*
 * Errors, warnings and info lines of the level that is set go to take, as they are (nothing is
 * escaped), instead of to stderr; NULL: to stderr again. For who reports them in words of its own.
 */
void log_divert(void (*take)(void *ctx, enum log_level level, const char *message), void *ctx);

/* Replaces the status line of the terminal (stderr); NULL clears it. Cut to the terminal's width.
 */
void log_status(const char *text);

/*
 * Text from outside made safe to show: controls (C1 too), direction overrides and bytes that are
 * not UTF-8 become \n, \t or \xNN. Writes at most size bytes, NUL included, whole characters only;
 * returns the length written.
 */
size_t log_escape(char *to, size_t size, const char *text);

#endif
