/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

size_t utf8_length(const char *text, size_t *bad)
{
	const unsigned char *byte = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf; /* of the second byte */
	size_t length;

	if (bad)
		*bad = 1;
	if (byte[0] < 0x80)
		return 1;
	if (byte[0] >= 0xc2 && byte[0] <= 0xdf)
		length = 2;
	else if ((byte[0] & 0xf0) == 0xe0)
		length = 3;
	else if (byte[0] >= 0xf0 && byte[0] <= 0xf4)
		length = 4;
	else
		return 0;
	/* No overlong forms, no surrogates, nothing above U+10FFFF. */
	if (byte[0] == 0xe0)
		low = 0xa0;
	else if (byte[0] == 0xed)
		high = 0x9f;
	else if (byte[0] == 0xf0)
		low = 0x90;
	else if (byte[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < length; i++) {
		if (byte[i] < low || byte[i] > high) {
			if (bad)
				*bad = i;
			return 0;
		}
		low = 0x80;
		high = 0xbf;
	}
	return length;
}

uint32_t utf8_point(const char *text, size_t length)
{
	uint32_t point = (unsigned char)*text;

	if (length > 1)
		point &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++)
		point = point << 6 | ((unsigned char)text[i] & 0x3f);
	return point;
}

size_t utf8_put(char to[4], uint32_t point)
{
	if (point < 0x80) {
		to[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		to[0] = (char)(0xc0 | point >> 6);
		to[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point < 0x10000) {
		to[0] = (char)(0xe0 | point >> 12);
		to[1] = (char)(0x80 | (point >> 6 & 0x3f));
		to[2] = (char)(0x80 | (point & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | point >> 18);
	to[1] = (char)(0x80 | (point >> 12 & 0x3f));
	to[2] = (char)(0x80 | (point >> 6 & 0x3f));
	to[3] = (char)(0x80 | (point & 0x3f));
	return 4;
}

size_t utf8_prefix(const char *text, size_t count)
{
	size_t bytes = 0;

	while (text[bytes] && ((text[bytes] & 0xc0) == 0x80 || count--))
		bytes++;
	return bytes;
}

bool text_is_one_of(const char *text, size_t size, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (size == strlen(words[i]) && !memcmp(text, words[i], size))
			return true;
	return false;
}

bool text_list_has(const char *list, char separator, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = list; at; at = strchr(at, separator)) {
		at += *at == separator;
		if (!strncmp(at, word, size) && (!at[size] || at[size] == separator))
			return true;
	}
	return false;
}

size_t text_quote(char *to, size_t size, const char *text)
{
	size_t used = (size_t)snprintf(to, size, "'");

	while (*text) {
		size_t plain = strcspn(text, "'");
		const char *escaped = text[plain] ? "'\\''" : "";

		used += (size_t)snprintf(used < size ? to + used : NULL,
					 used < size ? size - used : 0, "%.*s%s", (int)plain, text,
					 escaped);
		text += plain + (text[plain] != '\0');
	}
	used += (size_t)snprintf(used < size ? to + used : NULL, used < size ? size - used : 0,
				 "'");
	return used;
}

bool utf8_steers_terminal(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
	       (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

/* Bytes of the white space character that text begins with; 0: it begins with another one. */
static size_t measure_space(const char *text, size_t size)
{
	const unsigned char *byte = (const unsigned char *)text;

	if (size >= 1 && (byte[0] == ' ' || (byte[0] >= '\t' && byte[0] <= '\r')))
		return 1;
	if (size >= 2 && byte[0] == 0xc2 && (byte[1] == 0x85 || byte[1] == 0xa0))
		return 2; /* U+0085, U+00A0 */
	if (size < 3)
		return 0;
	if (byte[0] == 0xe1 && byte[1] == 0x9a && byte[2] == 0x80)
		return 3; /* U+1680 */
	if (byte[0] == 0xe2 && byte[1] == 0x80 &&
	    ((byte[2] >= 0x80 && byte[2] <= 0x8a) || byte[2] == 0xa8 || byte[2] == 0xa9 ||
	     byte[2] == 0xaf))
		return 3; /* U+2000 … U+200A, U+2028, U+2029, U+202F */
	if (byte[0] == 0xe2 && byte[1] == 0x81 && byte[2] == 0x9f)
		return 3; /* U+205F */
	if (byte[0] == 0xe3 && byte[1] == 0x80 && byte[2] == 0x80)
		return 3; /* U+3000 */
	return 0;
}

/* Bytes of the white space character that text ends with; 0: it ends with another one. */
static size_t measure_space_at_end(const char *text, size_t size)
{
	for (size_t length = 1; length <= 3 && length <= size; length++) {
		if (measure_space(text + size - length, length) == length)
			return length;
	}
	return 0;
}

void whitespace_trim(const char **text, size_t *size)
{
	size_t length;

	while ((length = measure_space(*text, *size))) {
		*text += length;
		*size -= length;
	}
	while ((length = measure_space_at_end(*text, *size)))
		*size -= length;
}

bool whitespace_only(const char *text, size_t size)
{
	whitespace_trim(&text, &size);
	return size == 0;
}

const char *rust_parse_u32(const char *text, uint32_t *value)
{
	const char *digits = text + (*text == '+');
	uint64_t sum = 0;

	if (!*text)
		return "cannot parse integer from empty string";
	if (!*digits || digits[strspn(digits, "0123456789")])
		return "invalid digit found in string";
	for (; *digits; digits++) {
		sum = sum * 10 + (uint64_t)(*digits - '0');
		if (sum > UINT32_MAX)
			return "number too large to fit in target type";
	}
	*value = (uint32_t)sum;
	return NULL;
}
