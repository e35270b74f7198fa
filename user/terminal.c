/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "log.h"

/* Below it a table is broken anyhow. */
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

void terminal_line_args(FILE *out, const char *format, va_list args)
{
	char *text = terminal_text(format, args);

	if (text)
		fprintf(out, "%s\n", text);
	free(text);
}

void terminal_line(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	terminal_line_args(out, format, args);
	va_end(args);
}

size_t terminal_columns(FILE *out, size_t most)
{
	struct winsize size = {0};

	if (ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col || size.ws_col > most)
		return most;
	return size.ws_col < COLUMNS_LEAST ? COLUMNS_LEAST : size.ws_col;
}
