/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include "json_expect.h"

static void put_value(FILE *out, struct json_object *value)
{
	struct json json = {.out = out};

	switch (json_object_get_type(value)) {
	case json_type_null:
		fputs("null", out);
		break;
	case json_type_boolean:
		fprintf(out, "boolean `%s`", json_object_get_boolean(value) ? "true" : "false");
		break;
	case json_type_double:
		fputs("floating point `", out);
		json_double(&json, NULL, json_object_get_double(value));
		putc('`', out);
		break;
	case json_type_int:
		fprintf(out, "integer `%s`", json_object_get_string(value));
		break;
	case json_type_string:
		fputs("string ", out);
		json_string(&json, NULL, json_object_get_string(value));
		break;
	case json_type_array:
		fputs("sequence", out);
		break;
	case json_type_object:
		fputs("map", out);
		break;
	}
}

static void refuse(const char *what, struct json_object *value, const char *expected, char *error,
		   size_t size)
{
	FILE *out;

	memset(error, 0, size);
	out = fmemopen(error, size - 1, "w");
	if (!out)
		return;
	fprintf(out, "invalid %s: ", what);
	put_value(out, value);
	fprintf(out, ", expected %s", expected);
	fclose(out);
}

void json_refuse_type(struct json_object *value, const char *expected, char *error, size_t size)
{
	refuse("type", value, expected, error, size);
}

static bool expect_type(struct json_object *value, enum json_type type, const char *expected,
			char *error, size_t size)
{
	if (json_object_is_type(value, type))
		return true;
	refuse("type", value, expected, error, size);
	return false;
}

bool json_expect_string(struct json_object *value, char *error, size_t size)
{
	return expect_type(value, json_type_string, "a string", error, size);
}

bool json_expect_optional_string(struct json_object *value, char *error, size_t size)
{
	return !value || json_expect_string(value, error, size);
}

bool json_expect_bool(struct json_object *value, char *error, size_t size)
{
	return expect_type(value, json_type_boolean, "a boolean", error, size);
}

bool json_expect_map(struct json_object *value, char *error, size_t size)
{
	return expect_type(value, json_type_object, "a map", error, size);
}

bool json_expect_char(struct json_object *value, char *error, size_t size)
{
	const char *text;
	int length, count = 0;

	if (!expect_type(value, json_type_string, "a character", error, size))
		return false;
	text = json_object_get_string(value);
	length = json_object_get_string_len(value);
	for (int i = 0; i < length; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	if (count == 1)
		return true;
	refuse("value", value, "a character", error, size);
	return false;
}

static bool expect_uint(struct json_object *value, uint64_t max, const char *expected, char *error,
			size_t size)
{
	if (!expect_type(value, json_type_int, expected, error, size))
		return false;
	/* The signed reading of a number above INT64_MAX is INT64_MAX. */
	if (json_object_get_int64(value) >= 0 && json_object_get_uint64(value) <= max)
		return true;
	refuse("value", value, expected, error, size);
	return false;
}

bool json_expect_u32(struct json_object *value, char *error, size_t size)
{
	return expect_uint(value, UINT32_MAX, "u32", error, size);
}

bool json_expect_u64(struct json_object *value, char *error, size_t size)
{
	return expect_uint(value, UINT64_MAX, "u64", error, size);
}
