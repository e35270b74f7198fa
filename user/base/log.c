/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "base/timed_write.h"
#include "base/wrap.h"

#define MESSAGE_MAX   2048
#define CLEAR_LINE    "\r\033[K"
#define DEFAULT_WIDTH 80
#define WIDTH_LEAST   40
/* Indent of all lines of a message but the first. */
#define HANGING_INDENT 2

/* How long to wait for a reader of stderr: in a window, whose rings fill up, and otherwise. */
#define WINDOW_WAIT_NS 100000000ull
#define WAIT_NS	       10000000000ull

static struct {
	enum log_level level;
	bool told; /* an error was logged */
	bool status_shown;
	uint64_t missed; /* messages since stderr blocked */
	bool cut;	 /* the last one was written in part */
	struct log_diversion diversion;
} state = {.level = LOG_INFO};

void log_set_level(enum log_level level)
{
	state.level = level;
}

enum log_level log_level(void)
{
	return state.level;
}

bool log_has_told(void)
{
	return state.told;
}

struct log_diversion log_divert(struct log_diversion diversion)
{
	struct log_diversion before = state.diversion;

	state.diversion = diversion;
	return before;
}

size_t log_escape(char *to, size_t size, const char *text)
{
	size_t used = 0;

	if (!size)
		return 0;
	while (*text) {
		char piece[20];
		size_t length = utf8_length(text, NULL);
		size_t taken = length ? length : 1;
		size_t out = 0;

		if (*text == '\n' || *text == '\t') {
			out = (size_t)snprintf(piece, sizeof(piece), *text == '\n' ? "\\n" : "\\t");
		} else if (length && !utf8_steers_terminal(utf8_point(text, length))) {
			memcpy(piece, text, length);
			out = length;
		} else {
			for (size_t i = 0; i < taken; i++)
				out += (size_t)snprintf(piece + out, sizeof(piece) - out, "\\x%02x",
							(unsigned char)text[i]);
		}
		if (used + out >= size)
			break;
		memcpy(to + used, piece, out);
		used += out;
		text += taken;
	}
	to[used] = '\0';
	return used;
}

/* Waits only once for a reader that does not read. */
static bool write_stderr(const char *text, size_t length)
{
	uint64_t wait_ns = state.missed ? 0 : timed_write_in_window() ? WINDOW_WAIT_NS : WAIT_NS;
	size_t written;

	/* Other failures cannot be reported anywhere. */
	if (timed_write(STDERR_FILENO, text, length, wait_ns, &written) != -ETIMEDOUT)
		return true;
	state.cut |= written && written < length;
	return false;
}

/* Once somebody reads again, the missed messages are mentioned first. */
static void write_message(const char *line, size_t length)
{
	char notice[128];
	int size;

	if (state.missed) {
		size = snprintf(notice, sizeof(notice),
				"%sferrum-bpftrace: nobody read stderr: %llu messages are missing "
				"here\n",
				state.cut ? "\n" : "", (unsigned long long)state.missed);
		if (!write_stderr(notice, (size_t)size)) {
			state.missed++;
			return;
		}
		state.missed = 0;
		state.cut = false;
	}
	state.missed += !write_stderr(line, length);
}

static bool can_clear_line(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") != 0;
}

/* Columns of the terminal on stderr; 0 if stderr is none. */
static size_t terminal_width(void)
{
	struct winsize size = {0};

	if (!isatty(STDERR_FILENO))
		return 0;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return DEFAULT_WIDTH;
	return size.ws_col;
}

/*
 * Copies a message for people, who read it on a terminal: broken at words. Elsewhere it is one
 * line, for grep. Returns the length.
 */
static size_t wrap_message(char *to, size_t size, const char *text)
{
	size_t width = terminal_width(), used, bytes;

	if (!width)
		return (size_t)snprintf(to, size, "%s", text);
	width = width > DEFAULT_WIDTH ? DEFAULT_WIDTH : width;
	width = width < WIDTH_LEAST ? WIDTH_LEAST : width;
	bytes = wrap_break(text, width);
	used = (size_t)snprintf(to, size, "%.*s", (int)bytes, text);
	for (text += bytes; *(text += strspn(text, " ")); text += bytes) {
		bytes = wrap_break(text, width - HANGING_INDENT);
		used += (size_t)snprintf(to + used, size - used, "\n%*s%.*s", HANGING_INDENT, "",
					 (int)bytes, text);
	}
	return used;
}

static void __attribute__((format(printf, 3, 0)))
write_line(enum log_level level, const char *prefix, const char *format, va_list args)
{
	char message[MESSAGE_MAX], safe[4 * MESSAGE_MAX + 64];
	char line[2 * sizeof(safe)];
	size_t used = 0;
	int saved = errno;
	int length;

	state.told |= level == LOG_ERR;
	length = vsnprintf(message, sizeof(message), format, args);
	if (length < 0)
		snprintf(message, sizeof(message), "(message could not be formatted)");
	else if ((size_t)length >= sizeof(message))
		memcpy(message + sizeof(message) - 4, "...", 4);
	if (state.diversion.take && level < LOG_DEBUG) {
		state.diversion.take(state.diversion.ctx, level, message);
		errno = saved;
		return;
	}

	if (state.status_shown)
		used = (size_t)snprintf(line, sizeof(line), CLEAR_LINE);
	state.status_shown = false;
	length = snprintf(safe, sizeof(safe), "%s", prefix);
	log_escape(safe + length, sizeof(safe) - (size_t)length, message);
	used += wrap_message(line + used, sizeof(line) - used - 1, safe);
	line[used++] = '\n';
	write_message(line, used);
	errno = saved;
}

#define DEFINE_LOG(name, lowest, prefix)                                                           \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		if (state.level < (lowest))                                                        \
			return;                                                                    \
		va_start(args, format);                                                            \
		write_line(lowest, prefix, format, args);                                          \
		va_end(args);                                                                      \
	}

DEFINE_LOG(log_err, LOG_ERR, "ferrum-bpftrace: ")
DEFINE_LOG(log_warn, LOG_WARN, "ferrum-bpftrace: ")
DEFINE_LOG(log_info, LOG_INFO, "")
DEFINE_LOG(log_debug, LOG_DEBUG, "ferrum-bpftrace: debug: ")

void log_status(const char *text)
{
	char safe[1024];
	char line[sizeof(safe) + sizeof(CLEAR_LINE)];
	size_t width, length;
	int saved = errno;

	if (!text && !state.status_shown)
		return;
	width = terminal_width();
	if (width && can_clear_line()) {
		log_escape(safe, sizeof(safe), text ? text : "");
		/* The last column stays free: some terminals wrap when it is written. */
		safe[utf8_prefix(safe, width - 1)] = '\0';
		length = (size_t)snprintf(line, sizeof(line), CLEAR_LINE "%s", safe);
		write_stderr(line, length);
		state.status_shown = text;
	}
	errno = saved;
}
