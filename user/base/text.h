/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* UTF-8, and what Rust's standard library makes of a text: white space and numbers. */
#ifndef FBT_BASE_TEXT_H
#define FBT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the character that a NUL-terminated text begins with, 1 to 4; 0 if it is malformed:
 * overlong, a surrogate, above U+10FFFF or cut off. Then *bad, unless NULL, is the bytes that one
 * U+FFFD stands for (Unicode 15, 3.9, "maximal subpart").
 */
size_t utf8_length(const char *text, size_t *bad);

/* The code point of a well-formed character of length bytes. */
uint32_t utf8_point(const char *text, size_t length);

/* Encodes a code point; returns the bytes written. */
size_t utf8_put(char to[4], uint32_t point);

/* The length in bytes of the first count characters of a text, or of all. */
size_t utf8_prefix(const char *text, size_t count);

/* Whether size bytes of text are one of count words. */
bool text_is_one_of(const char *text, size_t size, const char *const *words, size_t count);

/* Whether a list of words, delimited by separator, has one. */
bool text_list_has(const char *list, char separator, const char *word);

/*
 * Puts text in single quotes, as a shell takes it, and cuts what does not fit. Returns the length
 * that the whole has.
 */
size_t text_quote(char *to, size_t size, const char *text);

/* Controls (C1 and delete too), line separators, and what turns the direction of text. */
bool utf8_steers_terminal(uint32_t point);

/* Cuts the characters with Unicode's White_Space property off both ends, as str::trim does. */
void whitespace_trim(const char **text, size_t *size);

/* Nothing but white space, or nothing at all. */
bool whitespace_only(const char *text, size_t size);

/*
 * As str::parse::<u32>: an optional plus and decimal digits, nothing else. NULL, or the text of its
 * error; then value stays as it was.
 */
const char *rust_parse_u32(const char *text, uint32_t *value);

#endif
