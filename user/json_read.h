/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reading JSON with json-c, as strict as serde_json. json-c builds the value; the lexer here
 * refuses what json-c lets through even when strict: NaN, -01, 1., control characters and lone
 * surrogates in strings, UTF-8 that is none, and keys with a NUL (json-c would cut them there). An
 * integer beyond 64 bits, and -0, is a double, as to serde_json: json-c would take the nearest.
 */
#ifndef FBT_JSON_READ_H
#define FBT_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* json-c has a type of that name, json.h a function. */
#define json_bool json_c_bool
#include <json-c/json.h>
#undef json_bool
#include "json.h"

/* serde_json's recursion limit: the deepest nesting it takes is one less. */
#define JSON_READ_DEPTH 128

/* Zero-initialised at the start of a text. error is static memory, NULL while the text is sound. */
struct json_lexer {
	const char *error;
	uint32_t state;
	uint32_t depth;
	uint16_t code;	   /* of a \u escape */
	uint8_t left;	   /* bytes or hex digits that the character still needs */
	uint8_t low, high; /* limits of its next byte */
	bool wants_low;	   /* the last \u escape was a leading surrogate */
	bool has_nul;	   /* the last string held \u0000 */
};

/* Checks the next bytes of a text. Returns how many are sound: size unless lexer->error is set. */
size_t json_lexer_check(struct json_lexer *lexer, const char *data, size_t size);

/* The text ends here: sets lexer->error if it ends inside a number. */
void json_lexer_finish(struct json_lexer *lexer);

/*
 * Parses one whole text. text[size] must be NUL. On success *value is the caller's
 * (json_object_put; NULL for null). -EBADMSG: error holds the reason, "… at column N"; or -ENOMEM.
 */
int json_read(const char *text, size_t size, struct json_object **value, char *error,
	      size_t error_size);

/* Writes a value that was read: compact, members in the order they came, as serde_json does. */
void json_write_value(struct json *json, const char *key, struct json_object *value);

#endif
