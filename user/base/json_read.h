/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reading JSON as strictly as serde_json, into json-c's values. json-c's own parser is more lenient
 * even when strict (NaN, -01, 1., control characters and lone surrogates in strings, malformed
 * UTF-8). An integer beyond 64 bits, and -0, becomes a double, as in serde_json. A NUL in a key
 * becomes JSON_KEY_NUL, because json-c would cut the key there.
 */
#ifndef FBT_BASE_JSON_READ_H
#define FBT_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* json-c has a type of that name, json.h a function. */
#define json_bool json_c_bool
#include <json-c/json.h>
#undef json_bool
#include "base/json.h"
#include "base/vec.h"

/* serde_json's recursion limit: the deepest nesting it takes is one less. */
#define JSON_READ_DEPTH 128

#define JSON_END (-1) /* of the text, where a byte is asked for */

/* Reads a text piece by piece. Set in, or at and end; the rest is 0 at first. */
struct json_reader {
	FILE *in; /* NULL: the text is from at to end */
	const char *at;
	const char *end;
	bool unique_keys; /* refuse a key that an object has twice (else the last one counts), or
			     with NUL */
	uint32_t depth;	  /* of nesting; may begin above 0 */
	uint64_t taken;	  /* bytes before at */
	char error[96];	  /* set with -EBADMSG */
	VEC(char) text;	  /* of the last string or number */
	char *block;
};

/* The next byte after white space, left where it is, or JSON_END. -errno, below JSON_END. */
int json_reader__peek(struct json_reader *reader);

/* Takes the byte that json_reader__peek returned. */
void json_reader__skip(struct json_reader *reader);

/* The key of a member and its colon; the key is in text, with a NUL. Errors as below. */
int json_reader__key(struct json_reader *reader);

/* After an item or a member: a comma, or end, which sets *is_last. Errors as below. */
int json_reader__separator(struct json_reader *reader, char end, bool *is_last);

/*
 * Any value; *value is the caller's (json_object_put; NULL for null or on error). -EBADMSG with
 * error set, -ENOMEM, or -errno of reading.
 */
int json_reader__value(struct json_reader *reader, struct json_object **value);

/* Sets error and returns -EBADMSG. */
int json_reader__refuse(struct json_reader *reader, const char *reason);

void json_reader__clear(struct json_reader *reader);

/*
 * Parses one whole text. On success *value is the caller's (json_object_put; NULL for null).
 * -EBADMSG: error holds the reason, "… at column N"; or -ENOMEM.
 */
int json_read(const char *text, size_t size, struct json_object **value, char *error,
	      size_t error_size);

/* The same with a reader of the caller's, which is cleared. */
int json_reader__whole(struct json_reader *reader, struct json_object **value, char *error,
		       size_t error_size);

/* Whether a value is what a typed field of the engine takes; else error says what was expected. */
bool json_expect_string(struct json_object *value, char *error, size_t size);
bool json_expect_optional_string(struct json_object *value, char *error, size_t size);
bool json_expect_char(struct json_object *value, char *error, size_t size);
bool json_expect_bool(struct json_object *value, char *error, size_t size);
bool json_expect_map(struct json_object *value, char *error, size_t size);
bool json_expect_u32(struct json_object *value, char *error, size_t size);
bool json_expect_u64(struct json_object *value, char *error, size_t size);
bool json_expect_number(struct json_object *value, char *error, size_t size);

/* "expected a map, found 1.5"; returns false. */
bool json_refuse(struct json_object *value, const char *expected, char *error, size_t size);

/* Writes a value that was read: compact, members in the order they came, as serde_json does. */
void json_write_value(struct json *json, const char *key, struct json_object *value);

#endif
