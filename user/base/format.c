/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

const char *format_number(char buffer[FORMAT_MAX], double value)
{
	double size = value < 0 ? -value : value;

	snprintf(buffer, FORMAT_MAX, "%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
	return buffer;
}

static const char *format_scaled(char buffer[FORMAT_MAX], double value, double step,
				 const char *const *units, size_t unit_count)
{
	char number[FORMAT_MAX];
	size_t unit = 0;

	while (unit + 1 < unit_count && value >= (unit ? 999.5 : step)) {
		value /= step;
		unit++;
	}
	if (unit)
		format_number(number, value);
	else
		snprintf(number, sizeof(number), "%.0f", value);
	snprintf(buffer, FORMAT_MAX, "%.12s %s", number, units[unit]);
	return buffer;
}

const char *format_time(char buffer[FORMAT_MAX], double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};

	if (ns >= 999.5 && ns < 1000)
		ns = 1000;
	return format_scaled(buffer, ns, 1000, units, 4);
}

const char *format_utc(char buffer[FORMAT_UTC_MAX], uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	struct tm utc;
	size_t length;

	/* 64 bits of nanoseconds end in the year 2554. */
	gmtime_r(&seconds, &utc);
	length = strftime(buffer, FORMAT_UTC_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(buffer + length, FORMAT_UTC_MAX - length, ".%06uZ",
		 (unsigned int)(realtime_ns % NS_PER_S / NS_PER_US));
	return buffer;
}

const char *format_bytes(char buffer[FORMAT_MAX], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};

	return format_scaled(buffer, (double)bytes, 1024, units, 5);
}

const char *format_count(char buffer[FORMAT_MAX], uint64_t count)
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};

	if (count >= 10000000)
		return format_scaled(buffer, (double)count, 1000, units, 7);
	if (count >= 1000000)
		snprintf(buffer, FORMAT_MAX, "%" PRIu64 ",%03" PRIu64 ",%03" PRIu64,
			 count / 1000000, count / 1000 % 1000, count % 1000);
	else if (count >= 1000)
		snprintf(buffer, FORMAT_MAX, "%" PRIu64 ",%03" PRIu64, count / 1000, count % 1000);
	else
		snprintf(buffer, FORMAT_MAX, "%" PRIu64, count);
	return buffer;
}

const char *format_percent(char buffer[FORMAT_MAX], double percent)
{
	if (percent > 0 && percent < 0.05)
		snprintf(buffer, FORMAT_MAX, "<0.1 %%");
	else
		snprintf(buffer, FORMAT_MAX, "%.1f %%", percent);
	return buffer;
}

const char *format_part(char buffer[FORMAT_MAX], double percent)
{
	if (percent <= 100)
		return format_percent(buffer, percent);
	snprintf(buffer, FORMAT_MAX, "over 100 %%");
	return buffer;
}

const char *format_most(char buffer[FORMAT_MAX], double percent)
{
	if (percent > 100)
		return format_part(buffer, percent);
	memcpy(buffer, "up to ", 6);
	if (percent > 0 && percent < 0.05)
		snprintf(buffer + 6, FORMAT_MAX - 6, "0.1 %%");
	else
		snprintf(buffer + 6, FORMAT_MAX - 6, "%.1f %%", percent);
	return buffer;
}

void line_add(struct line *line, const char *format, ...)
{
	size_t room = line->size - line->length;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->length, room, format, args);
	va_end(args);
	if (length < 0)
		line->text[line->length] = '\0';
	else
		line->length += (size_t)length < room ? (size_t)length : room - 1;
}

void line_add_times(struct line *line, uint64_t count)
{
	if (count == 1)
		line_add(line, "once");
	else
		line_add(line, "%s times", FORMAT_COUNT(count));
}

double percent_of(double part, double whole)
{
	return whole > 0 ? part / whole * 100 : 0;
}

static size_t count_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += (*text & 0xc0) != 0x80;
	return count;
}

const char *shorten_text(char *to, size_t size, const char *text, size_t columns)
{
	size_t room = 4 * strlen(text) + 1;
	char *safe = malloc(room);
	size_t characters, head, tail;

	if (!safe) {
		log_escape(to, size, "?");
		return to;
	}
	log_escape(safe, room, text);
	characters = count_characters(safe);
	if (characters <= columns) {
		snprintf(to, size, "%s", safe);
	} else {
		/* The end of a path or of a name says more than its beginning. */
		head = (columns - 3) / 3;
		tail = columns - 3 - head;
		snprintf(to, size, "%.*s...%s", (int)utf8_prefix(safe, head), safe,
			 safe + utf8_prefix(safe, characters - tail));
	}
	free(safe);
	return to;
}

/* Start of the last part of name[0 … length), outside of any brackets. */
static size_t find_last_part(const char *name, size_t length)
{
	int depth = 0;

	for (size_t i = length; i-- > 0;) {
		if (name[i] == '>' || name[i] == ')' || name[i] == '}')
			depth++;
		else if (name[i] == '<' || name[i] == '(' || name[i] == '{')
			depth--;
		else if (depth <= 0 && name[i] == ':')
			return i + 1;
	}
	return 0;
}

const char *shorten_name(char *to, size_t size, const char *name, size_t columns)
{
	const char *text = strstr(name, NAME_BY_TEXT);
	size_t length = strlen(name), start;
	char part[256];

	if (length <= columns)
		return shorten_text(to, size, name, columns);
	if (text) {
		snprintf(part, sizeof(part), "%.*s", (int)(text - name), name);
		return shorten_text(to, size, part, columns);
	}
	start = find_last_part(name, length);
	while (start > 2 && name[start] == '{') {
		length = start - 2;
		start = find_last_part(name, length);
	}
	if (length == start)
		return shorten_text(to, size, name, columns);
	snprintf(part, sizeof(part), "%.*s", (int)(length - start), name + start);
	return shorten_text(to, size, part, columns);
}

/* A table does not fit into fewer columns anyway. */
#define COLUMNS_LEAST 60

char *terminal_text(const char *format, va_list args)
{
	char *text = NULL, *safe;
	size_t size;

	if (vasprintf(&text, format, args) < 0)
		return NULL;
	size = 4 * strlen(text) + 1; /* each byte becomes at most \xNN */
	safe = malloc(size);
	if (safe)
		log_escape(safe, size, text);
	free(text);
	return safe;
}

void terminal_line(FILE *out, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = terminal_text(format, args);
	va_end(args);
	if (text)
		fprintf(out, "%s\n", text);
	free(text);
}

size_t terminal_columns(FILE *out, size_t most)
{
	struct winsize size = {0};

	if (ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col || size.ws_col > most)
		return most;
	return size.ws_col < COLUMNS_LEAST ? COLUMNS_LEAST : size.ws_col;
}
