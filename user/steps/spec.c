/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/spec.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/log.h"
#include "base/text.h"
#include "steps/python_spec.h"
#include "steps/text_users.h"

static int copy_text(char **copy, const char *text, size_t size)
{
	*copy = strndup(text, size);
	return *copy ? 0 : -ENOMEM;
}

/* Whether text is a name as in USDT probes: letters, digits and underscores. */
static bool is_probe_name(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return size > 0;
}

static int parse_usdt(struct step_spec *spec, const char *text)
{
	const char *begin = strchr(text, ':');
	const char *end = begin ? strchr(begin, ',') : NULL;
	int err;

	if (!end || !is_probe_name(text, begin - text) ||
	    !is_probe_name(begin + 1, end - begin - 1) ||
	    !is_probe_name(end + 1, strlen(end + 1))) {
		log_err("--step %s: invalid USDT step (expected usdt:PROVIDER:BEGIN,END)",
			spec->text);
		return -EINVAL;
	}
	spec->form = STEP_SPEC_USDT;
	err = copy_text(&spec->provider, text, begin - text);
	if (!err)
		err = copy_text(&spec->begin_name, begin + 1, end - begin - 1);
	if (!err)
		err = copy_text(&spec->end_name, end + 1, strlen(end + 1));
	return err;
}

static int parse_python(struct step_spec *spec, const char *text)
{
	struct python_spec python;

	spec->form = STEP_SPEC_PYTHON;
	return python_spec_parse(&python, text);
}

/* The "string:" of string:TEXT or PATH:string:TEXT; NULL if text is neither. */
static const char *find_string(const char *text)
{
	const char *found = strstr(text, "string:");

	if (!found || found == text)
		return found;
	/* Not the end of another word, as of "std::string::at". */
	return found[-1] == ':' && found[7] != ':' &&
			       memchr(text, ':', (size_t)(found - text)) == found - 1
		       ? found
		       : NULL;
}

static int parse_text(struct step_spec *spec, const char *text, const char *string)
{
	const char *wanted = string + strlen("string:");
	size_t size = strlen(wanted);
	int err = 0;

	if (size < TEXT_BYTES_MIN || size > TEXT_BYTES_MAX || string == text + 1) {
		log_err("--step %s: expected string:TEXT or PATH:string:TEXT, with TEXT of %d to "
			"%d "
			"bytes",
			spec->text, TEXT_BYTES_MIN, TEXT_BYTES_MAX);
		return -EINVAL;
	}
	spec->form = STEP_SPEC_TEXT;
	if (string > text)
		err = copy_text(&spec->path, text, (size_t)(string - text) - 1);
	return err ? err : copy_text(&spec->pattern, wanted, size);
}

/* The "+0x" of PATH+0xADDR: the last one, after a path and before only hex digits; or NULL. */
static const char *find_address(const char *text)
{
	const char *found = NULL;
	size_t digits;

	for (const char *at = strstr(text, "+0x"); at; at = strstr(at + 1, "+0x"))
		found = at;
	if (!found || found == text)
		return NULL;
	digits = strspn(found + 3, "0123456789abcdefABCDEF");
	return found[3 + digits] ? NULL : found;
}

static int parse_address(struct step_spec *spec, const char *text, const char *plus)
{
	char *end;

	spec->form = STEP_SPEC_ADDRESS;
	errno = 0;
	spec->address = strtoull(plus + 1, &end, 16);
	if (errno || !plus[3]) {
		log_err("--step %s: %s is not an address", spec->text, plus + 1);
		return -EINVAL;
	}
	return copy_text(&spec->path, text, plus - text);
}

/*
 * The colon of PATH:SYMBOL, or NULL. C++ and Rust names have only double colons, except in an ABI
 * tag like name[abi:cxx11], which is after a bracket.
 */
static const char *find_path_colon(const char *text)
{
	for (const char *at = text; *at && !strchr("<({[*?", *at); at++) {
		if (*at != ':')
			continue;
		if (at[1] != ':')
			return at;
		at++;
	}
	return NULL;
}

static bool is_regex(const char *text, size_t size)
{
	return size > 2 && text[0] == '/' && text[size - 1] == '/';
}

static int parse_regex(struct step_spec *spec, const char *text, size_t size)
{
	char reason[128];
	int err;

	spec->form = STEP_SPEC_REGEX;
	err = copy_text(&spec->pattern, text + 1, size - 2);
	if (err)
		return err;
	err = regcomp(&spec->regex, spec->pattern, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, &spec->regex, reason, sizeof(reason));
		log_err("--step %s: not a regular expression: %s", spec->text, reason);
		return err == REG_ESPACE ? -ENOMEM : -EINVAL;
	}
	spec->has_regex = true;
	return 0;
}

/* /REGEX/ and /PATH:/REGEX/ both begin and end with a slash; the second has ":/" inside. */
static const char *find_colon(const char *text)
{
	const char *inner = strstr(text, ":/");

	if (!is_regex(text, strlen(text)))
		return find_path_colon(text);
	return inner && is_regex(inner + 1, strlen(inner + 1)) ? inner : NULL;
}

static int parse_symbol(struct step_spec *spec, const char *text)
{
	const char *colon = find_colon(text);
	const char *symbol = colon ? colon + 1 : text;
	int err;

	if (colon == text || !*symbol) {
		log_err("--step %s: %s is missing; expected SYMBOL, PATH:SYMBOL, /REGEX/, "
			"PATH+0xADDR, string:TEXT or usdt:PROVIDER:BEGIN,END",
			spec->text, colon == text ? "the path" : "the symbol");
		return -EINVAL;
	}
	if (colon) {
		err = copy_text(&spec->path, text, colon - text);
		if (err)
			return err;
	}
	if (is_regex(symbol, strlen(symbol)))
		return parse_regex(spec, symbol, strlen(symbol));
	spec->form = STEP_SPEC_SYMBOL;
	return copy_text(&spec->pattern, symbol, strlen(symbol));
}

int step_spec_parse(struct step_spec *spec, const char *text)
{
	const char *plus = find_address(text), *string = find_string(text);
	int err;

	memset(spec, 0, sizeof(*spec));
	err = copy_text(&spec->text, text, strlen(text));
	if (err)
		goto out;
	if (python_spec_is(text))
		err = parse_python(spec, text);
	else if (!strncmp(text, "usdt:", 5))
		err = parse_usdt(spec, text + 5);
	else if (string)
		err = parse_text(spec, text, string);
	else if (plus)
		err = parse_address(spec, text, plus);
	else
		err = parse_symbol(spec, text);
out:
	if (err)
		step_spec_clear(spec);
	return err;
}

void step_spec_clear(struct step_spec *spec)
{
	if (spec->has_regex)
		regfree(&spec->regex);
	free(spec->text);
	free(spec->path);
	free(spec->pattern);
	free(spec->provider);
	free(spec->begin_name);
	free(spec->end_name);
	memset(spec, 0, sizeof(*spec));
}

static const char *const width_names[] = {
	[STEP_ARG_S32] = "s32",
	[STEP_ARG_U32] = "u32",
	[STEP_ARG_S64] = "s64",
	[STEP_ARG_U64] = "u64",
};

/* Takes "WIDTH(" from *text. */
static bool take_width(const char **text, uint32_t *width)
{
	for (uint32_t i = 0; i < 4; i++) {
		if (strncmp(*text, width_names[i], 3) || (*text)[3] != '(')
			continue;
		*width = i;
		*text += 4;
		return true;
	}
	return false;
}

static bool take_base(const char **text, uint32_t *base)
{
	if (!strncmp(*text, "sp", 2)) {
		*base = STEP_ARG_SP;
		*text += 2;
		return true;
	}
	if (strncmp(*text, "arg", 3) || (*text)[3] < '0' || (*text)[3] > '5')
		return false;
	*base = (*text)[3] - '0';
	*text += 4;
	return true;
}

/* Takes "+OFF)", "-OFF)" or ")" from *text. */
static bool take_offset(const char **text, int32_t *offset)
{
	const char *at = *text;
	long long value = 0;
	char *end;

	if (*at == '+' || *at == '-') {
		if (!isdigit((unsigned char)at[1]))
			return false;
		errno = 0;
		value = strtoll(at, &end, at[1] == '0' && (at[2] == 'x' || at[2] == 'X') ? 16 : 10);
		if (errno || value < INT32_MIN || value > INT32_MAX)
			return false;
		at = end;
	}
	if (*at != ')')
		return false;
	*offset = value;
	*text = at + 1;
	return true;
}

static bool parse_expression(struct step_arg *arg, const char *text)
{
	uint32_t width[2] = {0};

	while (arg->reads < 2 && take_width(&text, &width[arg->reads]))
		arg->reads++;
	if (!take_base(&text, &arg->base))
		return false;
	for (uint32_t i = 0; i < arg->reads; i++) {
		arg->width[i] = width[arg->reads - 1 - i];
		if (!take_offset(&text, &arg->offset[i]))
			return false;
	}
	/* The first of two reads gives an address. */
	if (arg->reads == 2 && arg->width[0] != STEP_ARG_U64)
		return false;
	return !*text && (arg->reads || arg->base != STEP_ARG_SP);
}

int step_arg_parse(struct step_arg *arg, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t size = equals ? (size_t)(equals - text) : 0;

	memset(arg, 0, sizeof(*arg));
	if (!is_probe_name(text, size) || isdigit((unsigned char)*text) ||
	    size >= sizeof(arg->name)) {
		log_err("--step-arg %s: expected NAME=EXPR, with NAME of letters, digits and _, "
			"at most %zu characters",
			text, sizeof(arg->name) - 1);
		return -EINVAL;
	}
	memcpy(arg->name, text, size);
	if (!parse_expression(arg, equals + 1)) {
		log_err("--step-arg %s: EXPR is argN (N 0 to 5), WIDTH(argN+OFF), WIDTH(sp+OFF) or "
			"WIDTH(u64(argN+OFF)+OFF), WIDTH one of s32 u32 s64 u64",
			text);
		return -EINVAL;
	}
	return 0;
}

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether a demangled name may have this word although the mangled name does not contain it. */
static bool is_invented(const char *word, size_t size)
{
	static const char *const words[] = {
		"operator", "std",	"string",  "basic_string", "allocator", "istream",
		"ostream",  "iostream", "closure", "shim",	   "virtual",	"thunk",
	};

	return text_is_one_of(word, size, words, sizeof(words) / sizeof(*words));
}

/*
 * A test that avoids demangling, which takes seconds for all symbols of a large library. Mangled
 * names contain identifiers unchanged, so a symbol without the longest identifier of the pattern
 * cannot match.
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

/* Drop glue has the name of its type in its own, so only a pattern that names it matches it. */
static bool matches_demangled(const struct step_spec *spec, char *name)
{
	bool found = name && matches_name(spec, name);

	if (found && strstr(name, "drop_in_place") && !strstr(spec->pattern, "drop_in_place"))
		found = false;

	free(name);
	return found;
}

bool step_spec_matches_symbol(const struct step_spec *spec, const char *symbol)
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

bool step_spec_matches_path(const char *path, const char *mapped)
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
