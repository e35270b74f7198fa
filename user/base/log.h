/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Messages to stderr. stdout and files carry data only. */
#ifndef FBT_BASE_LOG_H
#define FBT_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_NONE = -1,
	LOG_ERR = 0,
	LOG_WARN = 1,
	LOG_INFO = 2,
	LOG_DEBUG = 3,
	LOG_LIBBPF = 4 /* debug messages of libbpf */
};

/* Messages above this level are dropped. Default LOG_INFO. The only process-wide state in user/. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/*
 * One line, "ferrum-bpftrace: subject: reason" (errors, warnings) or bare (info); the newline is
 * added, control characters are escaped. On a terminal it is broken at words, at 80 columns. A
 * status line that is on the terminal is cleared first. errno stays as it was.
 */
void log_err(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether log_err was called: the failure has been reported. */
bool log_has_told(void);

/* Keeps the first error of several steps, all of which are done. */
static inline void keep_first(int *err, int result)
{
	if (!*err)
		*err = result;
}

/* Who gets messages instead of stderr; take NULL: nobody does. */
struct log_diversion {
	void (*take)(void *ctx, enum log_level level, const char *message);
	void *ctx;
};

/*
 * Passes errors, warnings and info lines on, unescaped, instead of writing them to stderr. For
 * callers that report them in their own words. Returns who got them before: divert to it again.
 */
struct log_diversion log_divert(struct log_diversion diversion);

/* Replaces the status line on the terminal (stderr), cut to its width; NULL clears it. */
void log_status(const char *text);

/*
 * Text from outside made safe to show: controls (C1 too), direction overrides and bytes that are
 * not UTF-8 become \n, \t or \xNN. Writes at most size bytes, NUL included, whole characters only;
 * returns the length written.
 */
size_t log_escape(char *to, size_t size, const char *text);

#endif
