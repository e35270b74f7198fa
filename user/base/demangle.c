/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define CLONE_SUFFIXES_MAX 8

static bool is_digits(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return size > 0;
}

/* Of which there may be several, so a compiler always numbers them. */
static bool is_numbered_word(const char *text, size_t size)
{
	static const char *const words[] = {"part", "isra",  "constprop", "lto_priv",
					    "llvm", "clone", "__part"};

	return text_is_one_of(text, size, words, sizeof(words) / sizeof(*words));
}

static bool is_clone_word(const char *text, size_t size)
{
	static const char *const words[] = {"cold", "warm", "localalias"};

	return text_is_one_of(text, size, words, sizeof(words) / sizeof(*words));
}

/* The last dot before end with text on both sides, or NULL. */
static const char *find_dot(const char *symbol, const char *end)
{
	const char *dot = memrchr(symbol, '.', end - symbol);

	return dot && dot > symbol && dot + 1 < end ? dot : NULL;
}

/* Length without the last suffix, or size if there is none: ".WORD.DIGITS", if bare also ".WORD".
 */
static size_t strip_suffix(const char *symbol, size_t size, bool bare)
{
	const char *end = symbol + size;
	const char *dot = find_dot(symbol, end);
	const char *word_end;

	if (!dot)
		return size;
	if (bare && is_clone_word(dot + 1, end - dot - 1))
		return dot - symbol;
	if (!is_digits(dot + 1, end - dot - 1))
		return size;
	word_end = dot;
	dot = find_dot(symbol, word_end);
	if (!dot || (!is_clone_word(dot + 1, word_end - dot - 1) &&
		     !is_numbered_word(dot + 1, word_end - dot - 1)))
		return size;
	return dot - symbol;
}

static size_t strip_suffixes(const char *symbol, bool bare)
{
	size_t size = strnlen(symbol, DEMANGLE_NAME_MAX);

	for (int i = 0; i < CLONE_SUFFIXES_MAX; i++) {
		size_t shorter = strip_suffix(symbol, size, bare);

		if (shorter == size)
			break;
		size = shorter;
	}
	return size;
}

/* Names of Go and Zig have dots, and a function of theirs may well be called warm or cold. */
static bool has_own_dots(const char *symbol, size_t size)
{
	if (!strncmp(symbol, "_Z", 2) || !strncmp(symbol, "_R", 2))
		return false;
	return memchr(symbol, '.', size) || memchr(symbol, '(', size) || memchr(symbol, '/', size);
}

size_t symbol_base_length(const char *symbol)
{
	size_t size = strip_suffixes(symbol, true);

	return has_own_dots(symbol, size) ? strip_suffixes(symbol, false) : size;
}

static bool has_suffix_word(const char *symbol, const char *word)
{
	const char *suffixes = symbol + symbol_base_length(symbol);
	size_t size = strlen(word);

	for (const char *at = strstr(suffixes, word); at; at = strstr(at + 1, word))
		if (!at[size] || at[size] == '.')
			return true;
	return false;
}

bool symbol_is_cold(const char *symbol)
{
	return has_suffix_word(symbol, ".cold");
}

bool symbol_is_part(const char *symbol)
{
	return has_suffix_word(symbol, ".part") || has_suffix_word(symbol, ".__part");
}

bool symbol_is_mangled(const char *symbol)
{
	return !strncmp(symbol, "_Z", 2) || !strncmp(symbol, "_R", 2);
}

/* Takes the output of the demanglers, as far as it fits. */
struct text {
	jmp_buf full;
	size_t size;
	char bytes[DEMANGLE_NAME_MAX];
};

/*
 * A name of n bytes may refer back to its own parts so that 2^n bytes are written, and a demangler
 * can only be stopped by leaving it in the middle. The demanglers keep their state on the stack,
 * except for a few bytes of a Rust identifier that is not ASCII.
 */
static void add_piece(const char *piece, size_t size, void *ctx)
{
	struct text *text = ctx;

	if (size >= sizeof(text->bytes) - text->size)
		longjmp(text->full, 1);
	if (size)
		memcpy(text->bytes + text->size, piece, size);
	text->size += size;
}

/* In the order of cplus_demangle, which has no limit to what it writes. */
static bool write_demangled(struct text *text, const char *symbol, int options)
{
	if (setjmp(text->full))
		return false;
	if (rust_demangle_callback(symbol, options, add_piece, text))
		return true;
	text->size = 0;
	return cplus_demangle_v3_callback(symbol, options, add_piece, text);
}

/* NULL: it is not mangled, its name is too long, or -ENOMEM. */
static char *demangle(const char *symbol, int options)
{
	struct text *text = malloc(sizeof(*text));
	char *name = NULL;

	if (!text)
		return NULL;
	text->size = 0;
	if (write_demangled(text, symbol, options))
		name = strndup(text->bytes, text->size);
	free(text);
	return name;
}

char *demangle_symbol(const char *symbol)
{
	char *base, *name = NULL;

	if (strnlen(symbol, DEMANGLE_NAME_MAX) == DEMANGLE_NAME_MAX)
		return NULL;
	base = strndup(symbol, symbol_base_length(symbol));
	if (!base || !symbol_is_mangled(base))
		return base;
	name = demangle(base, DMGL_ANSI);
	if (!name)
		return base;
	free(base);
	return name;
}

char *demangle_with_arguments(const char *symbol)
{
	char *base, *name;

	if (strncmp(symbol, "_Z", 2) || strnlen(symbol, DEMANGLE_NAME_MAX) == DEMANGLE_NAME_MAX)
		return NULL;
	base = strndup(symbol, symbol_base_length(symbol));
	if (!base)
		return NULL;
	name = demangle(base, DMGL_ANSI | DMGL_PARAMS);
	free(base);
	return name;
}
