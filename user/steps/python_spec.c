/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/python_spec.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"

#define PREFIX "py:"

bool python_spec_is(const char *text)
{
	return !strncmp(text, PREFIX, strlen(PREFIX));
}

/* The length of a Python name; bytes above ASCII may be letters. */
static size_t name_length(const char *text)
{
	size_t length = 0;

	if (isdigit((unsigned char)*text))
		return 0;
	while (isalnum((unsigned char)text[length]) || text[length] == '_' ||
	       (unsigned char)text[length] >= 0x80)
		length++;
	return length;
}

/* Names with dots between them. Their length; 0: text does not begin so. */
static size_t path_length(const char *text)
{
	size_t length = 0;

	for (;;) {
		size_t part = name_length(text + length);

		if (!part)
			return 0;
		length += part;
		if (text[length] != '.')
			return length;
		length++;
	}
}

static bool copy(char *to, size_t size, const char *from, size_t length)
{
	if (length >= size)
		return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

/* The length of ARGUMENT.PART or len(ARGUMENT.PART); 0: it is neither. */
static size_t expression_length(const char *text)
{
	size_t path;

	if (strncmp(text, "len(", 4))
		return path_length(text);
	path = path_length(text + 4);
	return path && text[4 + path] == ')' ? path + 5 : 0;
}

/* Takes "NAME=EXPR" and the comma or bracket after it. NULL: it is no such thing, or too long. */
static const char *take_number(struct python_spec *spec, const char *text)
{
	size_t name = name_length(text), expression;

	if (spec->count == FBT_PYTHON_ATTRIBUTES || !name || text[name] != '=')
		return NULL;
	expression = expression_length(text + name + 1);
	if (!expression || !copy(spec->names[spec->count], sizeof(spec->names[0]), text, name) ||
	    !copy(spec->expressions[spec->count], sizeof(spec->expressions[0]), text + name + 1,
		  expression))
		return NULL;
	spec->count++;
	text += name + 1 + expression;
	return *text == ',' || *text == ')' ? text : NULL;
}

static bool take_numbers(struct python_spec *spec, const char *text)
{
	do {
		text = take_number(spec, text + 1);
	} while (text && *text == ',');
	return text && !text[1];
}

static bool parse(struct python_spec *spec, const char *text)
{
	size_t module = path_length(text), name;

	if (!module || text[module] != ':')
		return false;
	name = path_length(text + module + 1);
	if (!name || !copy(spec->function, sizeof(spec->function), text, module + 1 + name))
		return false;
	text += module + 1 + name;
	return !*text || (*text == '(' && take_numbers(spec, text));
}

int python_spec_parse(struct python_spec *spec, const char *text)
{
	memset(spec, 0, sizeof(*spec));
	if (parse(spec, text + strlen(PREFIX)))
		return 0;
	log_err("--step %s: expected py:MODULE:QUALNAME or py:MODULE:QUALNAME(NAME=EXPR,...) with "
		"at "
		"most %d EXPR of the form ARGUMENT, ARGUMENT.PART or len(ARGUMENT.PART)",
		text, FBT_PYTHON_ATTRIBUTES);
	return -EINVAL;
}
