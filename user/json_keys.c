/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "json_keys.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "json_read.h"
#include "vec.h"

struct walk {
	const char *at;
	const char *end;
	char *names; /* all keys so far, each with a NUL: no longer than the text */
	size_t used;
	VEC(const char *) keys;		    /* of the open objects, in names */
	size_t first_keys[JSON_READ_DEPTH]; /* of the open objects and arrays */
	size_t depth;
};

static uint32_t read_hex(const char *digits)
{
	char text[5] = {digits[0], digits[1], digits[2], digits[3], '\0'};

	return (uint32_t)strtoul(text, NULL, 16);
}

static size_t put_utf8(char *to, uint32_t point)
{
	if (point < 0x80) {
		to[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		to[0] = (char)(0xc0 | point >> 6);
		to[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point < 0x10000) {
		to[0] = (char)(0xe0 | point >> 12);
		to[1] = (char)(0x80 | (point >> 6 & 0x3f));
		to[2] = (char)(0x80 | (point & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | point >> 18);
	to[1] = (char)(0x80 | (point >> 12 & 0x3f));
	to[2] = (char)(0x80 | (point >> 6 & 0x3f));
	to[3] = (char)(0x80 | (point & 0x3f));
	return 4;
}

/* One escape, *at behind its backslash. Surrogates come in pairs. */
static size_t read_escape(const char **at, char *to)
{
	static const char named[] = "b\bf\fn\nr\rt\t\"\"\\\\//";
	uint32_t point;

	if (**at != 'u') {
		*to = strchr(named, **at)[1];
		*at += 1;
		return 1;
	}
	point = read_hex(*at + 1);
	*at += 5;
	if (point >= 0xd800 && point <= 0xdbff) {
		point = 0x10000 + ((point - 0xd800) << 10) + (read_hex(*at + 2) - 0xdc00);
		*at += 6;
	}
	return put_utf8(to, point);
}

/* walk->at behind the opening quote, then behind the closing one. Bytes put at to. */
static size_t read_string(struct walk *walk, char *to)
{
	size_t length = 0;

	while (*walk->at != '"') {
		if (*walk->at == '\\') {
			walk->at++;
			length += read_escape(&walk->at, to + length);
		} else {
			to[length++] = *walk->at++;
		}
	}
	walk->at++;
	return length;
}

/* In a sound text a string before a colon is a key, and no other is. */
static int take_string(struct walk *walk)
{
	char *name = walk->names + walk->used;
	size_t length = read_string(walk, name);
	const char *next = walk->at;

	next += strspn(next, " \t\r\n");
	if (*next != ':')
		return 0;
	name[length] = '\0';
	walk->used += length + 1;
	return vec_push(&walk->keys, (const char *)name);
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int close_level(struct walk *walk, char **key)
{
	size_t first = walk->first_keys[--walk->depth];
	size_t count = walk->keys.count - first;
	const char **keys = count ? walk->keys.items + first : NULL;

	if (count)
		qsort(keys, count, sizeof(*keys), compare_keys);
	for (size_t i = 1; i < count; i++) {
		if (strcmp(keys[i - 1], keys[i]))
			continue;
		*key = strdup(keys[i]);
		return *key ? -EEXIST : -ENOMEM;
	}
	walk->keys.count = first;
	return 0;
}

static int take(struct walk *walk, char **key)
{
	char byte = *walk->at++;

	if (byte == '"')
		return take_string(walk);
	if (byte == '{' || byte == '[') {
		walk->first_keys[walk->depth++] = walk->keys.count;
	} else if (byte == '}' || byte == ']') {
		return close_level(walk, key);
	}
	return 0;
}

int json_keys_check(const char *text, size_t size, char **key)
{
	struct walk walk = {.at = text, .end = text + size};
	int err = 0;

	*key = NULL;
	walk.names = malloc(size + 1);
	if (!walk.names)
		return -ENOMEM;
	while (!err && walk.at < walk.end)
		err = take(&walk, key);
	vec_free(&walk.keys);
	free(walk.names);
	return err;
}
