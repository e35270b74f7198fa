/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/wrap.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static bool begins_character(char byte)
{
	return (byte & 0xc0) != 0x80;
}

static bool is_numeric(char byte)
{
	return byte && strchr("0123456789.,", byte);
}

/* Whether a number or "%" stands before the space at text[at], and belongs to what follows. */
static bool is_before_unit(const char *text, size_t at)
{
	size_t from = at;

	if (!at || strchr(",.", text[at - 1]))
		return false;
	if (text[at - 1] == '%')
		return true;
	while (from && is_numeric(text[from - 1]))
		from--;
	return from < at && (!from || strchr(" (", text[from - 1]));
}

/* Whether what follows a space is a number that belongs to what stands before it. */
static bool is_before_number(const char *after)
{
	size_t digits = 0;

	while (is_numeric(after[digits]))
		digits++;
	/* strchr finds the end of the text too. */
	return digits && (after[digits - 1] == ',' || strchr(";)", after[digits]));
}

static bool begins_option(const char *word)
{
	return word[0] == '-' && (word[1] == '-' || isalpha((unsigned char)word[1]));
}

/* Whether an option stands before the space at text[at], and the next word may be its value. */
static bool is_before_value(const char *text, size_t at)
{
	size_t from = at;

	while (from && text[from - 1] != ' ')
		from--;
	return begins_option(text + from) && isalnum((unsigned char)text[at - 1]);
}

/* Whether a command should not end between the space at text[at] and what follows. */
static bool is_in_command(const char *text, size_t at)
{
	return is_before_value(text, at) || begins_option(text + at + 1);
}

static size_t break_word(const char *text, size_t columns)
{
	size_t bytes = 0, part = 0;

	while (text[bytes] && text[bytes] != ' ') {
		if (begins_character(text[bytes]) && !columns--)
			return part ? part : bytes;
		bytes++;
		if (text[bytes - 1] == '/' || (bytes > 1 && !strncmp(text + bytes - 2, "::", 2)))
			part = bytes;
	}
	return bytes;
}

size_t wrap_break(const char *text, size_t columns)
{
	size_t bytes = strspn(text, " "), indent = bytes;
	size_t left = columns > indent ? columns - indent : 0;
	size_t space = 0, any_space = 0;

	while (text[bytes]) {
		if (begins_character(text[bytes]) && !left--)
			break;
		bytes++;
		if (text[bytes] != ' ')
			continue;
		any_space = bytes;
		if (!is_before_unit(text, bytes) && !is_before_number(text + bytes + 1) &&
		    !is_in_command(text, bytes))
			space = bytes;
	}
	if (!text[bytes])
		return bytes;
	if (any_space)
		return space ? space : any_space;
	columns = columns > indent ? columns - indent : 0;
	return indent + break_word(text + indent, columns + WRAP_WORD_MORE);
}
