/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "whitespace.h"

/* Bytes of the white space character that text begins with, 0 if it begins with something else. */
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

/* The same for the character that text ends with. */
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
