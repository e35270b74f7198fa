/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "step_match.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Words of demangled names that do not stand in the mangled ones. */
static bool is_invented(const char *word, size_t size)
{
	static const char *const words[] = {
		"operator", "std",	"string",  "basic_string", "allocator", "istream",
		"ostream",  "iostream", "closure", "shim",	   "virtual",	"thunk",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (size == strlen(words[i]) && !memcmp(word, words[i], size))
			return true;
	return false;
}

/*
 * Demangling every symbol of a large library takes seconds. Identifiers stand in mangled names as
 * they are, so a symbol without the longest one of the pattern cannot match.
 */
static bool may_match(const char *pattern, const char *symbol)
{
	const char *longest = NULL;
	size_t size = 0;
	int depth = 0;

	for (const char *at = pattern; *at; at++) {
		size_t run = 0;

		depth += strchr("<({[", *at) ? 1 : strchr(">)}]", *at) ? -1 : 0;
		while (is_identifier(at[run]))
			run++;
		if (!depth && run > size && !is_invented(at, run)) {
			longest = at;
			size = run;
		}
		at += run ? run - 1 : 0;
	}
	return !longest || memmem(symbol, strlen(symbol), longest, size);
}

static bool matches_name(const struct step_spec *spec, const char *name)
{
	if (spec->form == STEP_SPEC_REGEX)
		return !regexec(&spec->regex, name, 0, NULL, 0);
	return !strcmp(spec->pattern, name) || !fnmatch(spec->pattern, name, 0);
}

static bool matches_mangled(const struct step_spec *spec, const char *symbol)
{
	size_t size = symbol_base_length(symbol);
	char *base;
	bool found;

	if (spec->form == STEP_SPEC_REGEX)
		return false;
	if (matches_name(spec, symbol))
		return true;
	if (!symbol[size])
		return false;
	base = strndup(symbol, size);
	found = base && matches_name(spec, base);
	free(base);
	return found;
}

/* Drop glue bears the name of what it drops; it is meant only by who says so. */
static bool matches_demangled(const struct step_spec *spec, char *name)
{
	bool found = name && matches_name(spec, name);

	if (found && strstr(name, "drop_in_place") && !strstr(spec->pattern, "drop_in_place"))
		found = false;

	free(name);
	return found;
}

bool step_match_symbol(const struct step_spec *spec, const char *symbol)
{
	bool is_exact = spec->form == STEP_SPEC_SYMBOL && !strpbrk(spec->pattern, "*?[");

	if (symbol_is_cold(symbol) || symbol_is_part(symbol))
		return false;
	if (matches_mangled(spec, symbol))
		return true;
	if (spec->form != STEP_SPEC_REGEX && !symbol_is_mangled(symbol))
		return false;
	if (is_exact && !may_match(spec->pattern, symbol))
		return false;
	if (matches_demangled(spec, demangle_symbol(symbol)))
		return true;
	if (spec->form != STEP_SPEC_REGEX && !strchr(spec->pattern, '('))
		return false;
	return matches_demangled(spec, demangle_with_arguments(symbol));
}

bool step_match_path(const char *path, const char *mapped)
{
	size_t size, mapped_size = strlen(mapped);

	if (!strncmp(path, "./", 2))
		path += 2;
	size = strlen(path);
	if (!strcmp(path, mapped))
		return true;
	return *path != '/' && size < mapped_size && mapped[mapped_size - size - 1] == '/' &&
	       !strcmp(mapped + mapped_size - size, path);
}
