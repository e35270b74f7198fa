/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define BLOCK_SIZE 65536

int json_reader__refuse(struct json_reader *reader, const char *reason)
{
	snprintf(reader->error, sizeof(reader->error), "%s", reason);
	return -EBADMSG;
}

/* The next byte, left where it is, JSON_END, or -errno below JSON_END. */
static int peek(struct json_reader *reader)
{
	size_t size;

	if (reader->at < reader->end)
		return (unsigned char)*reader->at;
	if (!reader->in)
		return JSON_END;
	if (!reader->block)
		reader->block = malloc(BLOCK_SIZE);
	if (!reader->block)
		return -ENOMEM;
	size = fread(reader->block, 1, BLOCK_SIZE, reader->in);
	if (!size)
		return ferror(reader->in) ? (errno > 1 ? -errno : -EIO) : JSON_END;
	reader->at = reader->block;
	reader->end = reader->block + size;
	return (unsigned char)*reader->at;
}

void json_reader__skip(struct json_reader *reader)
{
	reader->at++;
	reader->taken++;
}

int json_reader__peek(struct json_reader *reader)
{
	int byte = peek(reader);

	while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
		json_reader__skip(reader);
		byte = peek(reader);
	}
	return byte;
}

/* What was peeked at must not be there: the end, or a byte. */
static int refuse_byte(struct json_reader *reader, int byte, const char *reason)
{
	if (byte < JSON_END)
		return byte;
	return json_reader__refuse(reader, byte == JSON_END ? "EOF while parsing a value" : reason);
}

static int keep(struct json_reader *reader, int byte)
{
	json_reader__skip(reader);
	return vec_push(&reader->text, (char)byte);
}

/* A character of several bytes. */
static int take_utf8(struct json_reader *reader, int byte)
{
	size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
	char character[5] = "";
	int err;

	for (size_t i = 0; i < length; i++) {
		if (i)
			byte = peek(reader);
		if (byte < (i ? 0x80 : 0xc2) || byte > 0xf4)
			return refuse_byte(reader, byte, "invalid UTF-8");
		character[i] = (char)byte;
		err = keep(reader, byte);
		if (err)
			return err;
	}
	return utf8_length(character, NULL) == length
		       ? 0
		       : json_reader__refuse(reader, "invalid UTF-8");
}

/* The four digits of a \u escape. */
static int take_hex(struct json_reader *reader, uint32_t *code)
{
	*code = 0;
	for (int i = 0; i < 4; i++) {
		int byte = peek(reader), letter = byte | 0x20;

		if (byte >= '0' && byte <= '9')
			*code = *code << 4 | (uint32_t)(byte - '0');
		else if (byte >= 0 && letter >= 'a' && letter <= 'f')
			*code = *code << 4 | (uint32_t)(letter - 'a' + 10);
		else
			return refuse_byte(reader, byte, "invalid escape");
		json_reader__skip(reader);
	}
	return 0;
}

/* From after the \u. Surrogates come in pairs. */
static int take_code(struct json_reader *reader)
{
	uint32_t point, low;
	size_t length;
	char bytes[4];
	int err = take_hex(reader, &point);

	if (err)
		return err;
	if (point >= 0xd800 && point <= 0xdfff) {
		for (const char *wanted = "\\u"; *wanted; wanted++) {
			int byte = peek(reader);

			if (byte != *wanted)
				return refuse_byte(reader, byte,
						   "lone leading surrogate in hex escape");
			json_reader__skip(reader);
		}
		err = take_hex(reader, &low);
		if (err)
			return err;
		if (point > 0xdbff || low < 0xdc00 || low > 0xdfff)
			return json_reader__refuse(reader, "lone leading surrogate in hex escape");
		point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
	}
	length = utf8_put(bytes, point);
	for (size_t i = 0; !err && i < length; i++)
		err = vec_push(&reader->text, bytes[i]);
	return err;
}

/* From after the backslash. */
static int take_escape(struct json_reader *reader)
{
	static const char named[] = "b\bf\fn\nr\rt\t\"\"\\\\//";
	int byte = peek(reader);

	if (byte == 'u') {
		json_reader__skip(reader);
		return take_code(reader);
	}
	for (const char *pair = named; *pair; pair += 2) {
		if (*pair == byte) {
			json_reader__skip(reader);
			return vec_push(&reader->text, pair[1]);
		}
	}
	return refuse_byte(reader, byte, "invalid escape");
}

/* json-c would cut a key at a NUL. No UTF-8 has these two bytes, which Java writes for one. */
static int hide_nul(struct json_reader *reader)
{
	char *last = &reader->text.items[reader->text.count - 1];

	if (*last)
		return 0;
	if (reader->unique_keys)
		return json_reader__refuse(reader, "key with a NUL character");
	*last = JSON_KEY_NUL[0];
	return vec_push(&reader->text, JSON_KEY_NUL[1]);
}

/* From after the opening quote to after the closing one, into reader->text. */
static int take_text(struct json_reader *reader, bool is_key)
{
	int err = 0;

	reader->text.count = 0;
	while (!err) {
		int byte = peek(reader);

		if (byte == '"') {
			json_reader__skip(reader);
			return 0;
		}
		if (byte == '\\') {
			json_reader__skip(reader);
			err = take_escape(reader);
			if (!err && is_key)
				err = hide_nul(reader);
		} else if (byte < 0x20) {
			err = refuse_byte(reader, byte, "control character in a string");
		} else {
			err = byte < 0x80 ? keep(reader, byte) : take_utf8(reader, byte);
		}
	}
	return err;
}

static int take_string(struct json_reader *reader, struct json_object **value)
{
	int err = take_text(reader, false);

	if (err)
		return err;
	*value = json_object_new_string_len(reader->text.count ? reader->text.items : "",
					    (int)reader->text.count);
	return *value ? 0 : -ENOMEM;
}

static bool is_digit(int byte)
{
	return byte >= '0' && byte <= '9';
}

/* At least one digit. */
static int take_digits(struct json_reader *reader)
{
	int byte = peek(reader), err = 0;

	if (!is_digit(byte))
		return refuse_byte(reader, byte, "invalid number");
	for (; !err && is_digit(byte); byte = peek(reader))
		err = keep(reader, byte);
	return err;
}

/* The text of a number; *is_float: it has a point or an exponent. */
static int take_number_text(struct json_reader *reader, bool *is_float)
{
	int byte = peek(reader), err = 0;

	reader->text.count = 0;
	*is_float = false;
	if (byte == '-')
		err = keep(reader, byte);
	if (!err && peek(reader) == '0') {
		err = keep(reader, '0');
		if (!err && is_digit(peek(reader)))
			err = json_reader__refuse(reader, "invalid number");
	} else if (!err) {
		err = take_digits(reader);
	}
	if (!err && peek(reader) == '.') {
		*is_float = true;
		err = keep(reader, '.');
		if (!err)
			err = take_digits(reader);
	}
	byte = peek(reader);
	if (!err && (byte == 'e' || byte == 'E')) {
		*is_float = true;
		err = keep(reader, byte);
		byte = peek(reader);
		if (!err && (byte == '+' || byte == '-'))
			err = keep(reader, byte);
		if (!err)
			err = take_digits(reader);
	}
	return err ? err : vec_push(&reader->text, '\0');
}

static int take_number(struct json_reader *reader, struct json_object **value)
{
	const char *text;
	bool is_float;
	int err = take_number_text(reader, &is_float);

	if (err)
		return err;
	text = reader->text.items;
	errno = 0;
	if (!is_float && *text == '-') {
		int64_t number = strtoll(text, NULL, 10);

		is_float = errno || !number;
		*value = is_float ? NULL : json_object_new_int64(number);
	} else if (!is_float) {
		uint64_t number = strtoull(text, NULL, 10);

		is_float = errno;
		*value = is_float	       ? NULL
			 : number <= INT64_MAX ? json_object_new_int64((int64_t)number)
					       : json_object_new_uint64(number);
	}
	if (is_float) {
		double number = strtod(text, NULL);

		if (isinf(number))
			return json_reader__refuse(reader, "number out of range");
		*value = json_object_new_double_s(number, text);
	}
	return *value ? 0 : -ENOMEM;
}

static int take_word(struct json_reader *reader, const char *word)
{
	for (; *word; word++) {
		int byte = peek(reader);

		if (byte != *word)
			return refuse_byte(reader, byte, "expected value");
		json_reader__skip(reader);
	}
	return 0;
}

int json_reader__separator(struct json_reader *reader, char end, bool *is_last)
{
	int byte = json_reader__peek(reader);

	if (byte != ',' && byte != end)
		return refuse_byte(reader, byte,
				   end == ']' ? "expected `,` or `]`" : "expected `,` or `}`");
	*is_last = byte == end;
	json_reader__skip(reader);
	return 0;
}

static int take_item(struct json_reader *reader, struct json_object *array)
{
	struct json_object *item;
	int err = json_reader__value(reader, &item);

	if (!err && json_object_array_add(array, item)) {
		json_object_put(item);
		err = -ENOMEM;
	}
	return err;
}

int json_reader__key(struct json_reader *reader)
{
	int byte = json_reader__peek(reader), err;

	if (byte != '"')
		return refuse_byte(reader, byte, "key must be a string");
	json_reader__skip(reader);
	err = take_text(reader, true);
	if (err)
		return err;
	byte = json_reader__peek(reader);
	if (byte != ':')
		return refuse_byte(reader, byte, "expected `:`");
	json_reader__skip(reader);
	return vec_push(&reader->text, '\0');
}

static int take_member(struct json_reader *reader, struct json_object *object)
{
	struct json_object *value;
	char *key;
	int err = json_reader__key(reader);

	if (err)
		return err;
	if (reader->unique_keys && json_object_object_get_ex(object, reader->text.items, NULL)) {
		snprintf(reader->error, sizeof(reader->error), "duplicate field `%.64s`",
			 reader->text.items);
		return -EBADMSG;
	}
	key = strdup(reader->text.items);
	if (!key)
		return -ENOMEM;
	err = json_reader__value(reader, &value);
	if (!err && json_object_object_add(object, key, value)) {
		json_object_put(value);
		err = -ENOMEM;
	}
	free(key);
	return err;
}

/* An array or an object. */
static int take_list(struct json_reader *reader, char end, struct json_object **value,
		     int (*take)(struct json_reader *reader, struct json_object *list))
{
	bool is_last;
	int err = 0;

	*value = end == ']' ? json_object_new_array() : json_object_new_object();
	if (!*value)
		return -ENOMEM;
	if (++reader->depth >= JSON_READ_DEPTH)
		return json_reader__refuse(reader, "recursion limit exceeded");
	json_reader__skip(reader);
	is_last = json_reader__peek(reader) == end;
	if (is_last)
		json_reader__skip(reader);
	while (!err && !is_last) {
		err = take(reader, *value);
		if (!err)
			err = json_reader__separator(reader, end, &is_last);
	}
	reader->depth--;
	return err;
}

static int take_value(struct json_reader *reader, struct json_object **value)
{
	int byte = json_reader__peek(reader), err;

	switch (byte) {
	case '{':
		return take_list(reader, '}', value, take_member);
	case '[':
		return take_list(reader, ']', value, take_item);
	case '"':
		json_reader__skip(reader);
		return take_string(reader, value);
	case 'n':
		return take_word(reader, "null");
	case 't':
	case 'f':
		err = take_word(reader, byte == 't' ? "true" : "false");
		*value = err ? NULL : json_object_new_boolean(byte == 't');
		return err || *value ? err : -ENOMEM;
	default:
		if (byte == '-' || is_digit(byte))
			return take_number(reader, value);
		return refuse_byte(reader, byte, "expected value");
	}
}

int json_reader__value(struct json_reader *reader, struct json_object **value)
{
	int err;

	*value = NULL;
	err = take_value(reader, value);
	if (err) {
		json_object_put(*value);
		*value = NULL;
	}
	return err;
}

void json_reader__clear(struct json_reader *reader)
{
	vec_free(&reader->text);
	free(reader->block);
}

int json_reader__whole(struct json_reader *reader, struct json_object **value, char *error,
		       size_t error_size)
{
	int err = json_reader__value(reader, value);

	if (!err && json_reader__peek(reader) != JSON_END)
		err = json_reader__refuse(reader, "trailing characters");
	if (err == -EBADMSG)
		snprintf(error, error_size, "%s at column %" PRIu64, reader->error,
			 reader->taken + 1);
	if (err) {
		json_object_put(*value);
		*value = NULL;
	}
	json_reader__clear(reader);
	return err;
}

int json_read(const char *text, size_t size, struct json_object **value, char *error,
	      size_t error_size)
{
	struct json_reader reader = {.at = text, .end = text + size};

	return json_reader__whole(&reader, value, error, error_size);
}

bool json_refuse(struct json_object *value, const char *expected, char *error, size_t size)
{
	const char *found = json_object_is_type(value, json_type_object)  ? "a map"
			    : json_object_is_type(value, json_type_array) ? "a sequence"
									  : NULL;

	if (!found)
		found = json_object_to_json_string_ext(
			value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	snprintf(error, size, "expected %s, found %s", expected, found ? found : "another value");
	return false;
}

bool json_expect_string(struct json_object *value, char *error, size_t size)
{
	return json_object_is_type(value, json_type_string) ||
	       json_refuse(value, "a string", error, size);
}

bool json_expect_optional_string(struct json_object *value, char *error, size_t size)
{
	return !value || json_expect_string(value, error, size);
}

bool json_expect_bool(struct json_object *value, char *error, size_t size)
{
	return json_object_is_type(value, json_type_boolean) ||
	       json_refuse(value, "a boolean", error, size);
}

bool json_expect_map(struct json_object *value, char *error, size_t size)
{
	return json_object_is_type(value, json_type_object) ||
	       json_refuse(value, "a map", error, size);
}

bool json_expect_char(struct json_object *value, char *error, size_t size)
{
	const char *text = json_object_get_string(value);
	int length = json_object_get_string_len(value);

	/* A string of one NUL is a character too. */
	if (json_object_is_type(value, json_type_string) && length &&
	    (size_t)length == utf8_length(text, NULL))
		return true;
	return json_refuse(value, "a character", error, size);
}

static bool is_uint(struct json_object *value, uint64_t max)
{
	/* The signed reading of a number above INT64_MAX is INT64_MAX. */
	return json_object_is_type(value, json_type_int) && json_object_get_int64(value) >= 0 &&
	       json_object_get_uint64(value) <= max;
}

bool json_expect_u32(struct json_object *value, char *error, size_t size)
{
	return is_uint(value, UINT32_MAX) || json_refuse(value, "u32", error, size);
}

bool json_expect_u64(struct json_object *value, char *error, size_t size)
{
	return is_uint(value, UINT64_MAX) || json_refuse(value, "u64", error, size);
}

bool json_expect_number(struct json_object *value, char *error, size_t size)
{
	return json_object_is_type(value, json_type_int) ||
	       json_object_is_type(value, json_type_double) ||
	       json_refuse(value, "a number", error, size);
}

void json_write_value(struct json *json, const char *key, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_object:
		json_object_begin(json, key);
		json_object_object_foreach(value, member, child)
			json_write_value(json, member, child);
		json_object_end(json);
		break;
	case json_type_array:
		json_array_begin(json, key);
		for (size_t i = 0; i < json_object_array_length(value); i++)
			json_write_value(json, NULL, json_object_array_get_idx(value, i));
		json_array_end(json);
		break;
	case json_type_double:
		json_double(json, key, json_object_get_double(value));
		break;
	default:
		/* json-c writes strings as serde_json does, NULs in them included. */
		json_raw(json, key,
			 json_object_to_json_string_ext(
				 value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	}
}
