/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/python_spec.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"

#define PREFIX "py:"
#define INNER  "INNER"
#define TIME   "TIME("
#define BEFORE "BEFORE("

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

/* The length of WORD(PATH), for a word that ends with "("; 0: it is no such thing. */
static size_t call_length(const char *text, const char *word)
{
	size_t begin = strlen(word), path;

	if (strncmp(text, word, begin) != 0)
		return 0;
	path = path_length(text + begin);
	return path && text[begin + path] == ')' ? begin + path + 1 : 0;
}

/* Takes the expression that text begins with as that of the next number. Its length; 0: none. */
static size_t take_expression(struct python_spec *spec, const char *text)
{
	static const struct {
		const char *word;
		enum step_arg_source source;
	} calls[] = {{TIME, STEP_ARG_TIME}, {BEFORE, STEP_ARG_BEFORE}};
	enum step_arg_source *source = &spec->sources[spec->count];
	char *to = spec->expressions[spec->count];
	size_t size = sizeof(spec->expressions[0]), length;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		size_t word = strlen(calls[i].word);

		length = call_length(text, calls[i].word);
		if (!length)
			continue;
		*source = calls[i].source;
		return copy(to, size, text + word, length - word - 1) ? length : 0;
	}
	length = call_length(text, "len(");
	if (!length)
		length = path_length(text);
	if (length == strlen(INNER) && !strncmp(text, INNER, length)) {
		*source = STEP_ARG_INNER;
		return length;
	}
	return length && copy(to, size, text, length) ? length : 0;
}

/* Takes "NAME=EXPR" and the comma or bracket after it. NULL: it is no such thing, or too long. */
static const char *take_number(struct python_spec *spec, const char *text)
{
	size_t name = name_length(text), expression;

	if (spec->count == FBT_PYTHON_ATTRIBUTES || !name || text[name] != '=')
		return NULL;
	expression = take_expression(spec, text + name + 1);
	if (!expression || !copy(spec->names[spec->count], sizeof(spec->names[0]), text, name))
		return NULL;
	spec->count++;
	text += name + 1 + expression;
	return *text == ',' || *text == ')' ? text : NULL;
}

/* Whether each BEFORE names another number of the step. */
static bool is_closed(const struct python_spec *spec)
{
	for (size_t i = 0; i < spec->count; i++) {
		bool found = spec->sources[i] != STEP_ARG_BEFORE;

		for (size_t k = 0; k < spec->count && !found; k++)
			found = spec->sources[k] != STEP_ARG_BEFORE &&
				!strcmp(spec->names[k], spec->expressions[i]);
		if (!found)
			return false;
	}
	return true;
}

static bool take_numbers(struct python_spec *spec, const char *text)
{
	do {
		text = take_number(spec, text + 1);
	} while (text && *text == ',');
	return text && !text[1] && is_closed(spec);
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
		"at most %d EXPR of the form ARGUMENT, ARGUMENT.PART, len(ARGUMENT.PART), INNER, "
		"TIME(QUALNAME) or BEFORE(NAME)",
		text, FBT_PYTHON_ATTRIBUTES);
	return -EINVAL;
}

/* FNV-1a */
size_t python_spec_list_reads(const struct python_spec *spec,
			      const char *expressions[FBT_PYTHON_ATTRIBUTES])
{
	size_t count = 0;

	for (size_t i = 0; i < spec->count; i++) {
		if (spec->sources[i] == STEP_ARG_READ)
			expressions[count++] = spec->expressions[i];
	}
	return count;
}

uint32_t python_name_hash(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash ? hash : 1;
}
