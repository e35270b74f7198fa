/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/json.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void put_text(struct json *json, const char *text)
{
	fputs_unlocked(text, json->out);
}

/* The bit of the open level, and its word in has_items. The top level has none. */
static uint64_t *find_level(struct json *json, uint64_t *bit)
{
	uint32_t level = (json->depth - 1) & 127;

	*bit = 1ull << (level & 63);
	return &json->has_items[level >> 6];
}

static void put_escape(struct json *json, unsigned char byte)
{
	static const char named[] = "\bb\ff\nn\rr\tt\"\"\\\\";

	for (const char *pair = named; *pair; pair += 2) {
		if ((unsigned char)*pair == byte) {
			putc_unlocked('\\', json->out);
			putc_unlocked(pair[1], json->out);
			return;
		}
	}
	fprintf(json->out, "\\u%04x", byte);
}

/* The inside of a string. */
static void put_inside(struct json *json, const char *value, const char *end)
{
	const char *at = value, *plain = value; /* plain: start of the run that goes out as it is */

	while (at < end) {
		unsigned char byte = (unsigned char)*at;
		size_t length = 1, bad = 1;
		bool escapes = byte < 0x20 || byte == '"' || byte == '\\', steers = false;

		if (byte >= 0x7f) {
			length = utf8_length(at, &bad);
			steers = length && json->shown &&
				 utf8_steers_terminal(utf8_point(at, length));
		}
		if (length && !escapes && !steers) {
			at += length;
			continue;
		}
		fwrite_unlocked(plain, 1, (size_t)(at - plain), json->out);
		if (escapes)
			put_escape(json, byte);
		else if (steers)
			fprintf(json->out, "\\u%04x", utf8_point(at, length));
		else
			put_text(json, REPLACEMENT);
		at += length ? length : bad;
		plain = at;
	}
	fwrite_unlocked(plain, 1, (size_t)(at - plain), json->out);
}

static void put_string(struct json *json, const char *value)
{
	putc_unlocked('"', json->out);
	put_inside(json, value, value + strlen(value));
	putc_unlocked('"', json->out);
}

static void put_key(struct json *json, const char *key)
{
	const char *nul;

	putc_unlocked('"', json->out);
	while ((nul = strstr(key, JSON_KEY_NUL))) {
		put_inside(json, key, nul);
		put_text(json, "\\u0000");
		key = nul + strlen(JSON_KEY_NUL);
	}
	put_inside(json, key, key + strlen(key));
	putc_unlocked('"', json->out);
}

static void begin_value(struct json *json, const char *key)
{
	uint64_t bit, *items;

	if (json->depth) {
		items = find_level(json, &bit);
		if (*items & bit)
			putc_unlocked(',', json->out);
		*items |= bit;
	}
	if (key) {
		put_key(json, key);
		putc_unlocked(':', json->out);
	}
}

static void open_level(struct json *json, const char *key, char bracket)
{
	uint64_t bit, *items;

	begin_value(json, key);
	putc_unlocked(bracket, json->out);
	json->depth++;
	items = find_level(json, &bit);
	*items &= ~bit;
}

static void close_level(struct json *json, char bracket)
{
	json->depth--;
	putc_unlocked(bracket, json->out);
}

void json_object_begin(struct json *json, const char *key)
{
	open_level(json, key, '{');
}

void json_object_end(struct json *json)
{
	close_level(json, '}');
}

void json_array_begin(struct json *json, const char *key)
{
	open_level(json, key, '[');
}

void json_array_end(struct json *json)
{
	close_level(json, ']');
}

void json_string(struct json *json, const char *key, const char *value)
{
	begin_value(json, key);
	if (value)
		put_string(json, value);
	else
		put_text(json, "null");
}

/* Not printf, which would dominate the cost of a trace: it holds millions of numbers. */
static void put_uint(struct json *json, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, json->out);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	put_uint(json, value);
}

void json_int(struct json *json, const char *key, int64_t value)
{
	begin_value(json, key);
	if (value < 0)
		putc_unlocked('-', json->out);
	put_uint(json, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	put_text(json, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
	begin_value(json, key);
	put_text(json, "null");
}

/* How serde_json (ryu) prints a type of numbers. */
struct number_form {
	int precision; /* digits after the first one that are always enough */
	int point_min; /* from this decimal exponent … */
	int point_max; /* … up to that one, without an exponent */
	bool single;   /* f32 */
};

/*
 * Significant digits of value > 0 without the point, as few as read back the same, and the decimal
 * exponent of the first one.
 */
static int find_digits(double value, const struct number_form *form, char digits[18], int *exponent)
{
	char text[32];
	int count = 0;

	for (int precision = 0; precision <= form->precision; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, value);
		if (form->single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	for (const char *at = text; *at && *at != 'e'; at++) {
		if (*at >= '0' && *at <= '9')
			digits[count++] = *at;
	}
	*exponent = atoi(strchr(text, 'e') + 1);
	return count;
}

static void put_zeros(struct json *json, int count)
{
	while (count-- > 0)
		putc_unlocked('0', json->out);
}

/* Writes digits with the point after the first whole ones; whole may lie outside of digits. */
static void put_decimal(struct json *json, const char *digits, int count, int whole)
{
	int before = whole < 0 ? 0 : whole < count ? whole : count;

	if (whole <= 0)
		putc_unlocked('0', json->out);
	fwrite_unlocked(digits, 1, (size_t)before, json->out);
	put_zeros(json, whole - count);
	putc_unlocked('.', json->out);
	put_zeros(json, -whole);
	if (before == count)
		putc_unlocked('0', json->out);
	fwrite_unlocked(digits + before, 1, (size_t)(count - before), json->out);
}

static void put_number(struct json *json, const char *key, double value,
		       const struct number_form *form)
{
	char digits[18] = "";
	int exponent, count;

	if (!isfinite(value)) {
		json_null(json, key);
		return;
	}
	begin_value(json, key);
	if (signbit(value))
		putc_unlocked('-', json->out);
	value = fabs(value);
	if (value == 0.0) {
		put_text(json, "0.0");
		return;
	}
	count = find_digits(value, form, digits, &exponent);
	if (exponent >= form->point_min && exponent <= form->point_max) {
		put_decimal(json, digits, count, exponent + 1);
		return;
	}
	putc_unlocked(digits[0], json->out);
	if (count > 1)
		putc_unlocked('.', json->out);
	fprintf(json->out, "%.*se%d", count - 1, digits + 1, exponent);
}

void json_double(struct json *json, const char *key, double value)
{
	static const struct number_form form = {.precision = 16, .point_min = -5, .point_max = 15};

	put_number(json, key, value, &form);
}

void json_float(struct json *json, const char *key, float value)
{
	static const struct number_form form = {
		.precision = 8, .point_min = -6, .point_max = 12, .single = true};

	put_number(json, key, (double)value, &form);
}

void json_micros(struct json *json, const char *key, uint64_t ns)
{
	char decimals[] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
			   (char)('0' + ns % 10)};

	begin_value(json, key);
	put_uint(json, ns / 1000);
	fwrite_unlocked(decimals, 1, sizeof(decimals), json->out);
}

void json_newline(struct json *json)
{
	putc_unlocked('\n', json->out);
}

void json_raw(struct json *json, const char *key, const char *text)
{
	begin_value(json, key);
	put_text(json, text);
}

static bool add_field(struct json_fields *fields, struct json_field field)
{
	uint32_t at = fields->count;
	int order = -1;

	while (at && (order = strcmp(fields->items[at - 1].key, field.key)) > 0)
		at--;
	if ((at && !order) || fields->count == JSON_FIELDS_MAX)
		return false;
	memmove(&fields->items[at + 1], &fields->items[at],
		(fields->count - at) * sizeof(fields->items[0]));
	fields->items[at] = field;
	fields->count++;
	return true;
}

bool json_fields_uint(struct json_fields *fields, const char *key, uint64_t value)
{
	return add_field(fields, (struct json_field){key, JSON_FIELD_UINT, {.u = value}});
}

bool json_fields_int(struct json_fields *fields, const char *key, int64_t value)
{
	return add_field(fields, (struct json_field){key, JSON_FIELD_INT, {.i = value}});
}

bool json_fields_double(struct json_fields *fields, const char *key, double value)
{
	return add_field(fields, (struct json_field){key, JSON_FIELD_DOUBLE, {.d = value}});
}

bool json_fields_bool(struct json_fields *fields, const char *key, bool value)
{
	return add_field(fields, (struct json_field){key, JSON_FIELD_BOOL, {.b = value}});
}

bool json_fields_string(struct json_fields *fields, const char *key, const char *value)
{
	return add_field(fields, (struct json_field){key, JSON_FIELD_STRING, {.s = value}});
}

void json_fields_write(struct json *json, const char *key, const struct json_fields *fields)
{
	json_object_begin(json, key);
	for (uint32_t i = 0; i < fields->count; i++) {
		const struct json_field *field = &fields->items[i];

		switch (field->type) {
		case JSON_FIELD_UINT:
			json_uint(json, field->key, field->u);
			break;
		case JSON_FIELD_INT:
			json_int(json, field->key, field->i);
			break;
		case JSON_FIELD_DOUBLE:
			json_double(json, field->key, field->d);
			break;
		case JSON_FIELD_BOOL:
			json_bool(json, field->key, field->b);
			break;
		case JSON_FIELD_STRING:
			json_string(json, field->key, field->s);
			break;
		}
	}
	json_object_end(json);
}

uint64_t json_member_get(const struct json_member *member, const void *from)
{
	const char *at = (const char *)from + member->offset;

	return member->size == sizeof(uint32_t) ? *(const uint32_t *)(const void *)at
						: *(const uint64_t *)(const void *)at;
}

void json_put_members(struct json *json, const struct json_member *members, size_t count,
		      const void *from)
{
	for (size_t i = 0; i < count; i++)
		json_uint(json, members[i].key, json_member_get(&members[i], from));
}

void json_fields_add_members(struct json_fields *fields, const struct json_member *members,
			     size_t count, const void *from)
{
	for (size_t i = 0; i < count; i++)
		json_fields_uint(fields, members[i].key, json_member_get(&members[i], from));
}
