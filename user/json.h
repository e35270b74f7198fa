/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The only JSON writer: compact, commas and escaping handled here. Strings are escaped as serde_json
 * does (\b \f \n \r \t \" \\, other controls as \u00xx, everything else raw); bytes that are not
 * UTF-8 become U+FFFD. Reading is json-c's business.
 *
 *	struct json json = {.out = file};
 *	json_object_begin(&json, NULL);
 *	json_string(&json, "name", "futex");
 *	json_object_end(&json);
 *
 * key is NULL inside arrays and at the top. Errors show in ferror(out). At most 32 levels deep.
 */
#ifndef FBT_JSON_H
#define FBT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	uint32_t depth;
	uint32_t has_items; /* bit per level: a comma is due */
};

void json_object_begin(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array_begin(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value); /* NULL value: null */
void json_uint(struct json *json, const char *key, uint64_t value);
void json_int(struct json *json, const char *key, int64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* As serde_json prints an f64: shortest form that reads back the same; NaN and infinities: null. */
void json_double(struct json *json, const char *key, double value);

/* Text that is JSON already, unchecked. */
void json_raw(struct json *json, const char *key, const char *text);

#endif
