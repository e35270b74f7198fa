/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The only JSON writer: compact, commas and escaping handled here. Strings are escaped as
 * serde_json does (\b \f \n \r \t \" \\, other controls as \u00xx, everything else raw); bytes
 * that are not UTF-8 become U+FFFD.
 *
 *	struct json json = {.out = file};
 *	json_object_begin(&json, NULL);
 *	json_string(&json, "name", "futex");
 *	json_object_end(&json);
 *
 * key is NULL inside arrays and at the top. Errors show in ferror(out). At most 128 levels deep.
 */
#ifndef FBT_BASE_JSON_H
#define FBT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Stands for a NUL in a key that was read, and is written as \u0000. */
#define JSON_KEY_NUL "\xc0\x80"

struct json {
	FILE *out;
	bool shown; /* maybe on a terminal: what would steer it becomes \uXXXX too (log_escape) */
	uint32_t depth;
	uint64_t has_items[2]; /* bit per level: a comma is due */
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
void json_float(struct json *json, const char *key, float value); /* the same of an f32 */

/* Nanoseconds as microseconds with all three decimals: 1234567 is 1234.567. */
void json_micros(struct json *json, const char *key, uint64_t ns);

/* The next value begins on a new line, after the comma that may be due. */
void json_newline(struct json *json);

/* Text that is JSON already, unchecked. */
void json_raw(struct json *json, const char *key, const char *text);

/*
 * Members collected in any order and written sorted by key, bytewise, as ferrum's maps are. Keys
 * and strings are borrowed until json_fields_write; {0} is empty. A key that is there already, or
 * one more than JSON_FIELDS_MAX, is not taken: the functions then return false.
 */
#define JSON_FIELDS_MAX 96

enum json_field_type {
	JSON_FIELD_UINT,
	JSON_FIELD_INT,
	JSON_FIELD_DOUBLE,
	JSON_FIELD_BOOL,
	JSON_FIELD_STRING
};

struct json_field {
	const char *key;
	enum json_field_type type;
	union {
		uint64_t u;
		int64_t i;
		double d;
		bool b;
		const char *s;
	};
};

struct json_fields {
	struct json_field items[JSON_FIELDS_MAX]; /* sorted */
	uint32_t count;
};

bool json_fields_uint(struct json_fields *fields, const char *key, uint64_t value);
bool json_fields_int(struct json_fields *fields, const char *key, int64_t value);
bool json_fields_double(struct json_fields *fields, const char *key, double value);
bool json_fields_bool(struct json_fields *fields, const char *key, bool value);
bool json_fields_string(struct json_fields *fields, const char *key, const char *value);

/* As an object; key as everywhere above. */
void json_fields_write(struct json *json, const char *key, const struct json_fields *fields);

/* An unsigned member, of 4 or 8 bytes, of a structure whose figures are written from a table. */
struct json_member {
	const char *key;
	size_t offset;
	size_t size;
};

#define JSON_MEMBER(key, type, member)                                                             \
	{                                                                                          \
		key, offsetof(struct type, member), sizeof(((struct type *)NULL)->member)          \
	}

uint64_t json_member_get(const struct json_member *member, const void *from);

/* Writes all members of a table, an array. */
#define json_members(json, table, from)                                                            \
	json_put_members(json, table, sizeof(table) / sizeof(*(table)), from)
#define json_fields_members(fields, table, from)                                                   \
	json_fields_add_members(fields, table, sizeof(table) / sizeof(*(table)), from)
void json_put_members(struct json *json, const struct json_member *members, size_t count,
		      const void *from);
void json_fields_add_members(struct json_fields *fields, const struct json_member *members,
			     size_t count, const void *from);

#endif
