/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "patient.h"

#define MESSAGE_MAX   2048
#define CLEAR_LINE    "\r\033[K"
#define DEFAULT_WIDTH 80

/* For a reader of stderr; in a window, where rings fill up meanwhile, and else. */
#define WINDOW_WAIT_NS 100000000ull
#define WAIT_NS	       10000000000ull

static struct {
	enum log_level level;
	bool told; /* an error */
	bool status_shown;
	uint64_t missed; /* messages since stderr took no more */
	bool cut;	 /* it took the beginning of one */
	void (*take)(void *ctx, enum log_level level, const char *message);
	void *take_ctx;
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

void log_divert(void (*take)(void *ctx, enum log_level level, const char *message), void *ctx)
{
	state.take = take;
	state.take_ctx = ctx;
}

/* Bytes of the well-formed UTF-8 character at text and its code point; 0 if it is none. */
static size_t read_utf8(const unsigned char *text, uint32_t *point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = text[0] < 0x80		   ? 1
			: (text[0] & 0xe0) == 0xc0 ? 2
			: (text[0] & 0xf0) == 0xe0 ? 3
			: (text[0] & 0xf8) == 0xf0 ? 4
						   : 0;
	uint32_t value = length == 1 ? text[0] : text[0] & (0x7f >> length);

	if (!length)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (text[i] & 0x3f);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	*point = value;
	return length;
}

static bool is_showable(uint32_t point)
{
	if (point < 0x20 || (point >= 0x7f && point < 0xa0))
		return false;
	/* Line separators, and controls that turn the direction of what follows. */
	if (point >= 0x2028 && point <= 0x202e)
		return false;
	return point < 0x2066 || point > 0x2069;
}

size_t log_escape(char *to, size_t size, const char *text)
{
	const unsigned char *from = (const unsigned char *)text;
	size_t used = 0;

	if (!size)
		return 0;
	while (*from) {
		char piece[20];
		uint32_t point = 0;
		size_t length = read_utf8(from, &point);
		size_t taken = length ? length : 1;
		size_t out = taken;

		if (length && is_showable(point)) {
			memcpy(piece, from, length);
		} else if (*from == '\n' || *from == '\t') {
			memcpy(piece, *from == '\n' ? "\\n" : "\\t", 2);
			out = 2;
		} else {
			out = 0;
			for (size_t i = 0; i < taken; i++)
				out += (size_t)snprintf(piece + out, sizeof(piece) - out, "\\x%02x",
							from[i]);
		}
		if (used + out >= size)
			break;
		memcpy(to + used, piece, out);
		used += out;
		from += taken;
	}
	to[used] = '\0';
	return used;
}

/* Nobody is waited for twice. */
static bool write_stderr(const char *text, size_t length)
{
	uint64_t wait_ns = state.missed ? 0 : patient_in_window() ? WINDOW_WAIT_NS : WAIT_NS;
	size_t written;

	/* Where it has failed nobody is left to tell. */
	if (patient_write(STDERR_FILENO, text, length, wait_ns, &written) != -ETIMEDOUT)
		return true;
	state.cut |= written && written < length;
	return false;
}

/* What was missed is told first, once somebody reads again. */
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

static void __attribute__((format(printf, 3, 0)))
write_line(enum log_level level, const char *prefix, const char *format, va_list args)
{
	char message[MESSAGE_MAX];
	char line[4 * MESSAGE_MAX + 64];
	size_t used = 0;
	int saved = errno;
	int length;

	state.told |= level == LOG_ERR;
	length = vsnprintf(message, sizeof(message), format, args);
	if (length < 0)
		snprintf(message, sizeof(message), "(message could not be formatted)");
	else if ((size_t)length >= sizeof(message))
		memcpy(message + sizeof(message) - 4, "...", 4);
	if (state.take && level < LOG_DEBUG) {
		state.take(state.take_ctx, level, message);
		errno = saved;
		return;
	}

	if (state.status_shown)
		used = (size_t)snprintf(line, sizeof(line), CLEAR_LINE);
	state.status_shown = false;
	used += (size_t)snprintf(line + used, sizeof(line) - used, "%s", prefix);
	used += log_escape(line + used, sizeof(line) - used - 1, message);
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

/* Columns of the terminal on stderr; 0 if it is none, or one that cannot clear a line. */
static size_t terminal_width(void)
{
	const char *term = getenv("TERM");
	struct winsize size = {0};

	if (!isatty(STDERR_FILENO) || !term || !*term || !strcmp(term, "dumb"))
		return 0;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return DEFAULT_WIDTH;
	return size.ws_col;
}

/* Cuts text to columns characters; every character counts as one column. */
static size_t cut_to_columns(const char *text, size_t columns)
{
	size_t length = 0;

	while (text[length]) {
		if ((text[length] & 0xc0) != 0x80 && !columns--)
			break;
		length++;
	}
	return length;
}

void log_status(const char *text)
{
	char safe[1024];
	char line[sizeof(safe) + sizeof(CLEAR_LINE)];
	size_t width, length;
	int saved = errno;

	if (!text && !state.status_shown)
		return;
	width = terminal_width();
	if (width) {
		log_escape(safe, sizeof(safe), text ? text : "");
		/* The last column stays free: some terminals wrap when it is written. */
		safe[cut_to_columns(safe, width - 1)] = '\0';
		length = (size_t)snprintf(line, sizeof(line), CLEAR_LINE "%s", safe);
		write_stderr(line, length);
		state.status_shown = text;
	}
	errno = saved;
}
