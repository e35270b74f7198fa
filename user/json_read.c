/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json_read.h"
#include <json-c/json_visit.h>

enum lexer_state {
	OUTSIDE = 0,
	STRING,
	STRING_UTF8,
	ESCAPE,
	ESCAPE_HEX,
	LOW_BACKSLASH, /* the \ and the u of the second half of a surrogate pair */
	LOW_U,
	MINUS, /* numbers: what has been read last */
	ZERO,
	INTEGER,
	POINT,
	FRACTION,
	EXPONENT,
	EXPONENT_SIGN,
	EXPONENT_DIGIT,
};

static bool is_digit(unsigned char byte)
{
	return byte >= '0' && byte <= '9';
}

static void refuse(struct json_lexer *lexer, const char *error)
{
	lexer->error = error;
}

static void take_outside(struct json_lexer *lexer, unsigned char byte)
{
	if (byte == '"') {
		lexer->state = STRING;
		lexer->has_nul = false;
	} else if (byte == '-') {
		lexer->state = MINUS;
	} else if (is_digit(byte)) {
		lexer->state = byte == '0' ? ZERO : INTEGER;
	} else if (byte == '[' || byte == '{') {
		if (++lexer->depth >= JSON_READ_DEPTH)
			refuse(lexer, "recursion limit exceeded");
	} else if (byte == ']' || byte == '}') {
		lexer->depth -= lexer->depth > 0;
	} else if (byte == ':') {
		if (lexer->has_nul)
			refuse(lexer, "key with a NUL character");
	} else if (!byte || !strchr(", \t\n\rtruefalsn", byte)) {
		refuse(lexer, "expected value");
	}
}

static void begin_utf8(struct json_lexer *lexer, unsigned char byte)
{
	lexer->state = STRING_UTF8;
	lexer->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
	lexer->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
	if (byte >= 0xc2 && byte <= 0xdf)
		lexer->left = 1;
	else if ((byte & 0xf0) == 0xe0)
		lexer->left = 2;
	else if (byte >= 0xf0 && byte <= 0xf4)
		lexer->left = 3;
	else
		refuse(lexer, "invalid UTF-8");
}

static void take_string(struct json_lexer *lexer, unsigned char byte)
{
	if (byte == '"')
		lexer->state = OUTSIDE;
	else if (byte == '\\')
		lexer->state = ESCAPE;
	else if (byte < 0x20)
		refuse(lexer, "control character (\\u0000-\\u001F) found while parsing a string");
	else if (byte >= 0x80)
		begin_utf8(lexer, byte);
}

static void take_utf8(struct json_lexer *lexer, unsigned char byte)
{
	if (byte < lexer->low || byte > lexer->high)
		refuse(lexer, "invalid UTF-8");
	lexer->low = 0x80;
	lexer->high = 0xbf;
	if (--lexer->left == 0)
		lexer->state = STRING;
}

static void take_escape(struct json_lexer *lexer, unsigned char byte)
{
	if (byte == 'u') {
		lexer->state = ESCAPE_HEX;
		lexer->left = 4;
		lexer->code = 0;
	} else if (byte && strchr("\"\\/bfnrt", byte)) {
		lexer->state = STRING;
	} else {
		refuse(lexer, "invalid escape");
	}
}

static void end_hex(struct json_lexer *lexer)
{
	bool is_low = lexer->code >= 0xdc00 && lexer->code <= 0xdfff;

	if (is_low != lexer->wants_low)
		refuse(lexer, "lone leading surrogate in hex escape");
	lexer->wants_low = lexer->code >= 0xd800 && lexer->code <= 0xdbff;
	lexer->state = lexer->wants_low ? LOW_BACKSLASH : STRING;
	if (!lexer->code)
		lexer->has_nul = true;
}

static void take_hex(struct json_lexer *lexer, unsigned char byte)
{
	unsigned int digit;

	if (is_digit(byte))
		digit = byte - '0';
	else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
		digit = (byte | 0x20) - 'a' + 10u;
	else {
		refuse(lexer, "invalid escape");
		return;
	}
	lexer->code = (uint16_t)(lexer->code << 4 | digit);
	if (--lexer->left == 0)
		end_hex(lexer);
}

static void take_low(struct json_lexer *lexer, unsigned char byte)
{
	if (byte != (lexer->state == LOW_BACKSLASH ? '\\' : 'u')) {
		refuse(lexer, "lone leading surrogate in hex escape");
	} else if (lexer->state == LOW_BACKSLASH) {
		lexer->state = LOW_U;
	} else {
		lexer->state = ESCAPE_HEX;
		lexer->left = 4;
		lexer->code = 0;
	}
}

/* The state behind byte, OUTSIDE if the number has ended before it, -1 if it must not follow. */
static int find_number_state(enum lexer_state state, unsigned char byte)
{
	bool digit = is_digit(byte);

	switch (state) {
	case MINUS:
		return byte == '0' ? ZERO : digit ? INTEGER : -1;
	case ZERO:
		if (digit)
			return -1;
		break;
	case POINT:
		return digit ? FRACTION : -1;
	case EXPONENT:
		if (byte == '+' || byte == '-')
			return EXPONENT_SIGN;
		return digit ? EXPONENT_DIGIT : -1;
	case EXPONENT_SIGN:
		return digit ? EXPONENT_DIGIT : -1;
	default:
		if (digit)
			return (int)state;
	}
	if (byte == '.' && (state == ZERO || state == INTEGER))
		return POINT;
	if ((byte | 0x20) == 'e' && state != EXPONENT_DIGIT)
		return EXPONENT;
	return OUTSIDE;
}

static void take_number(struct json_lexer *lexer, unsigned char byte)
{
	int state = find_number_state((enum lexer_state)lexer->state, byte);

	if (state < 0) {
		refuse(lexer, "invalid number");
		return;
	}
	lexer->state = (uint32_t)state;
	if (state == OUTSIDE)
		take_outside(lexer, byte);
}

size_t json_lexer_check(struct json_lexer *lexer, const char *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)data[i];

		switch (lexer->state) {
		case OUTSIDE:
			take_outside(lexer, byte);
			break;
		case STRING:
			take_string(lexer, byte);
			break;
		case STRING_UTF8:
			take_utf8(lexer, byte);
			break;
		case ESCAPE:
			take_escape(lexer, byte);
			break;
		case ESCAPE_HEX:
			take_hex(lexer, byte);
			break;
		case LOW_BACKSLASH:
		case LOW_U:
			take_low(lexer, byte);
			break;
		default:
			take_number(lexer, byte);
		}
		if (lexer->error)
			return i;
	}
	return size;
}

void json_lexer_finish(struct json_lexer *lexer)
{
	if (lexer->error)
		return;
	if (lexer->state == MINUS || lexer->state == POINT || lexer->state == EXPONENT ||
	    lexer->state == EXPONENT_SIGN)
		refuse(lexer, "EOF while parsing a value");
}

/* A literal that is too large for a double reads as an infinity, which is no JSON. */
static int visit_number(json_object *value, int flags, json_object *parent, const char *key,
			size_t *index, void *found)
{
	if (json_object_is_type(value, json_type_double) && isinf(json_object_get_double(value))) {
		*(bool *)found = true;
		return JSON_C_VISIT_RETURN_STOP;
	}
	return JSON_C_VISIT_RETURN_CONTINUE;
}

/* Whether serde_json reads an integer as a float: beyond 64 bits, and -0. */
static bool is_float_to_serde(const char *digits)
{
	errno = 0;
	if (*digits != '-')
		strtoull(digits, NULL, 10);
	else if (!strtoll(digits, NULL, 10))
		return true;
	return errno == ERANGE;
}

/* The next such integer in a sound text, NULL if there is none; *length is its own. */
static const char *find_float(const char *at, size_t *length)
{
	while (*at) {
		at += strcspn(at, "\"-0123456789");
		if (*at == '"') {
			for (at++; *at && *at != '"'; at++)
				at += *at == '\\' && at[1];
			at += *at == '"';
			continue;
		}
		*length = strspn(at, "+-.eE0123456789");
		if (*length && strspn(at, "-0123456789") == *length && is_float_to_serde(at))
			return at;
		at += *length;
	}
	return NULL;
}

/*
 * json-c would make the next best integer of them: they get a ".0". 0 and *copy, which is NULL if
 * the text has none of them, or -ENOMEM.
 */
static int mark_floats(const char *text, char **copy, size_t *size)
{
	size_t length, marked_size;
	const char *found = find_float(text, &length);
	FILE *out;
	bool failed;

	*copy = NULL;
	if (!found)
		return 0;
	out = open_memstream(copy, &marked_size);
	if (!out)
		return -ENOMEM;
	for (; found; found = find_float(text, &length)) {
		length += (size_t)(found - text);
		fwrite(text, 1, length, out);
		fputs(".0", out);
		text += length;
	}
	fputs(text, out);
	failed = ferror(out);
	if (!fclose(out) && !failed) {
		*size = marked_size;
		return 0;
	}
	free(*copy);
	*copy = NULL;
	return -ENOMEM;
}

static int parse(const char *text, size_t size, struct json_object **value, char *error,
		 size_t error_size)
{
	struct json_tokener *tokener = NULL;
	enum json_tokener_error parse_error;
	bool infinite = false;
	int err = -EBADMSG;

	tokener = json_tokener_new_ex(JSON_READ_DEPTH + 1);
	if (!tokener)
		return -ENOMEM;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	/* With its NUL, so that a number at the end is known to be whole. */
	*value = json_tokener_parse_ex(tokener, text, (int)size + 1);
	parse_error = json_tokener_get_error(tokener);
	if (parse_error != json_tokener_success) {
		snprintf(error, error_size, "%s at column %zu",
			 json_tokener_error_desc(parse_error),
			 json_tokener_get_parse_end(tokener) + 1);
		goto out;
	}
	json_c_visit(*value, 0, visit_number, &infinite);
	if (infinite) {
		snprintf(error, error_size, "number out of range");
		goto out;
	}
	err = 0;
out:
	if (err) {
		json_object_put(*value);
		*value = NULL;
	}
	json_tokener_free(tokener);
	return err;
}

int json_read(const char *text, size_t size, struct json_object **value, char *error,
	      size_t error_size)
{
	struct json_lexer lexer = {.error = NULL};
	char *marked = NULL;
	size_t sound;
	int err;

	*value = NULL;
	sound = json_lexer_check(&lexer, text, size);
	json_lexer_finish(&lexer);
	if (lexer.error || size >= INT_MAX / 2) {
		snprintf(error, error_size, "%s at column %zu",
			 lexer.error ? lexer.error : "text too long", sound + 1);
		return -EBADMSG;
	}
	err = mark_floats(text, &marked, &size);
	if (!err)
		err = parse(marked ? marked : text, size, value, error, error_size);
	free(marked);
	return err;
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
