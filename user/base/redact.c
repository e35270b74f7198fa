/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/redact.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* Longer words with a single dash may be a secret that begins with a dash. */
#define SHORT_OPTION_MAX 16

struct writer {
	char *to;
	size_t size;
	size_t length;
};

/* One argument. */
struct scan {
	const char *text;
	size_t length;
	size_t at; /* bytes before it are written */
	bool is_cut;
	bool has_space; /* in the bytes before at */
	size_t no_at;	/* no '@' between at and here */
	struct writer *out;
	struct redactor *redactor;
};

static bool is_space(char c)
{
	return !c || c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_letter(char c)
{
	return is_lower(c) || (c >= 'A' && c <= 'Z');
}

static bool is_name(char c)
{
	return is_letter(c) || is_digit(c) || c == '-' || c == '_';
}

bool redact_is_secret(const char *name, size_t length)
{
	static const char *const words[] = {"key",    "token",	    "secret",	    "password",
					    "passwd", "credential", "authorization"};
	size_t start = length;

	while (start && name[start - 1] != '-' && name[start - 1] != '_')
		start--;
	for (size_t i = 0; i < COUNT(words); i++) {
		if (length - start == strlen(words[i]) &&
		    !strncasecmp(name + start, words[i], length - start))
			return true;
	}
	return false;
}

static size_t skip_digits(const char *text, size_t length, size_t at)
{
	while (at < length && is_digit(text[at]))
		at++;
	return at;
}

static bool is_number(const char *text, size_t length)
{
	size_t at = length && (*text == '-' || *text == '+'), end = skip_digits(text, length, at);
	size_t digits = end - at;

	if (end < length && text[end] == '.') {
		at = end + 1;
		end = skip_digits(text, length, at);
		digits += end - at;
	}
	if (digits && end < length && (text[end] | 0x20) == 'e') {
		at = end + 1;
		at += at < length && (text[at] == '-' || text[at] == '+');
		end = skip_digits(text, length, at);
		digits = end - at;
	}
	return digits && end == length;
}

bool redact_is_shown(const char *value, size_t length)
{
	while (length && (is_space(*value) || is_quote(*value) || *value == '\\')) {
		value++;
		length--;
	}
	while (length && (is_space(value[length - 1]) || is_quote(value[length - 1]) ||
			  value[length - 1] == '\\'))
		length--;
	return !length || is_number(value, length);
}

/*
 * Whether a word is an option rather than a secret, which may begin with a dash too (base64url).
 */
static bool is_option(const char *word, size_t length)
{
	size_t dashes = 0, at;

	if (length && is_quote(*word)) {
		word++;
		length--;
	}
	while (dashes < length && dashes < 2 && word[dashes] == '-')
		dashes++;
	if (dashes == length)
		return dashes == 2;
	if (!dashes || !is_letter(word[dashes]))
		return false;
	at = dashes + 1;
	while (at < length &&
	       (dashes == 2 ? is_name(word[at]) || word[at] == '.'
			    : is_lower(word[at]) || word[at] == '-' || word[at] == '_'))
		at++;
	return (at == length || word[at] == '=') && (dashes == 2 || at <= SHORT_OPTION_MAX);
}

static void write_bytes(struct writer *out, const char *bytes, size_t count)
{
	size_t room = out->size - 1 - out->length;

	count = count < room ? count : room;
	memcpy(out->to + out->length, bytes, count);
	out->length += count;
	out->to[out->length] = '\0';
}

static void note_space(struct scan *scan, size_t end)
{
	for (size_t i = scan->at; i < end && !scan->has_space; i++)
		scan->has_space = is_space(scan->text[i]);
}

static void keep(struct scan *scan, size_t end)
{
	note_space(scan, end);
	write_bytes(scan->out, scan->text + scan->at, end - scan->at);
	scan->at = end;
}

static void replace(struct scan *scan, size_t end)
{
	if (end == scan->at)
		return;
	note_space(scan, end);
	write_bytes(scan->out, REDACTED, strlen(REDACTED));
	scan->at = end;
}

/* Returns whether the value was replaced. */
static bool take_value(struct scan *scan, size_t end)
{
	bool is_whole = !scan->is_cut || end < scan->length;

	if (end == scan->at ||
	    (is_whole && redact_is_shown(scan->text + scan->at, end - scan->at))) {
		keep(scan, end);
		return false;
	}
	replace(scan, end);
	return true;
}

static size_t skip_spaces(const struct scan *scan, size_t at)
{
	while (at < scan->length && is_space(scan->text[at]))
		at++;
	return at;
}

/* The position of the closing quote, or the end. */
static size_t find_quote(const struct scan *scan, size_t at, char quote)
{
	while (at < scan->length && scan->text[at] != quote)
		at += scan->text[at] == '\\' ? 2 : 1;
	return at < scan->length ? at : scan->length;
}

/* The end of a word as a shell reads it. */
static size_t find_word_end(const struct scan *scan, size_t at)
{
	while (at < scan->length && !is_space(scan->text[at])) {
		if (is_quote(scan->text[at]))
			at = find_quote(scan, at + 1, scan->text[at]);
		else if (scan->text[at] == '\\')
			at++;
		at++;
	}
	return at < scan->length ? at : scan->length;
}

/* The name of a value: where it was found, and how. */
struct name {
	size_t start;
	size_t end;
	char enclosing;	 /* the quote before the name, which is not closed after it; or 0 */
	bool is_quoted;	 /* a quote follows the name */
	bool is_in_text; /* white space comes before the name: the argument may be a command */
};

/* The end of a value of JSON that may be a number. */
static size_t find_json_end(const struct scan *scan, size_t at)
{
	while (at < scan->length && !is_space(scan->text[at]) && !strchr(",}]", scan->text[at]))
		at++;
	return at;
}

/* The end of the value at scan->at. */
static size_t find_value_end(const struct scan *scan, const struct name *name, char separator)
{
	const char *text = scan->text;
	size_t at = scan->at, end;

	if (at == scan->length)
		return at;
	if (name->enclosing) {
		end = find_quote(scan, at, name->enclosing);
		if (end + 1 < scan->length && !is_space(text[end + 1]))
			end = find_word_end(scan, end + 1);
		return end;
	}
	if (separator == ':' && is_quote(text[at])) {
		end = find_quote(scan, at + 1, text[at]);
		return end < scan->length ? end + 1 : end;
	}
	if (separator == ':' && name->is_quoted) {
		end = find_json_end(scan, at);
		if (redact_is_shown(text + at, end - at))
			return end;
	}
	/* Spaces after a NAME=VALUE in the first word are part of the value. */
	if (separator == ':' || !name->is_in_text)
		return scan->length;
	return find_word_end(scan, at);
}

/* Replaces the words after an option, up to the next option. */
static void take_words(struct scan *scan)
{
	bool is_secret = true;
	size_t end;

	while (is_secret && scan->at < scan->length) {
		end = find_word_end(scan, scan->at);
		if (is_option(scan->text + scan->at, end - scan->at))
			return;
		is_secret = take_value(scan, end);
		keep(scan, skip_spaces(scan, end));
	}
}

/*
 * The values of an option without '=': the next arguments, or the next words. after is where its
 * name and a quote end, next the first byte after it that is no space.
 */
static void take_option(struct scan *scan, const struct name *name, size_t after, size_t next)
{
	/* In JSON or Python: "--api-key", "VALUE" */
	bool is_item = name->is_quoted && next < scan->length && scan->text[next] == ',';

	if (is_item)
		next = skip_spaces(scan, next + 1);
	if (next == scan->length)
		scan->redactor->takes_values = true;
	else if (next == after)
		return;
	keep(scan, next);
	take_words(scan);
}

/* Writes the name at scan->at, and its value if that is a secret. */
static void take_name(struct scan *scan)
{
	const char *text = scan->text;
	struct name name = {.start = scan->at, .end = scan->at, .is_in_text = scan->has_space};
	char before = name.start ? text[name.start - 1] : ' ';
	size_t after, next;

	while (name.end < scan->length && is_name(text[name.end]))
		name.end++;
	keep(scan, name.end);
	if (!redact_is_secret(text + name.start, name.end - name.start))
		return;
	after = name.end;
	while (after < scan->length && text[after] == '\\')
		after++;
	name.is_quoted = after < scan->length && is_quote(text[after]);
	after = name.is_quoted ? after + 1 : name.end;
	name.enclosing = is_quote(before) && !name.is_quoted ? before : '\0';
	next = skip_spaces(scan, after);
	if (next < scan->length && (text[next] == '=' || text[next] == ':')) {
		keep(scan, skip_spaces(scan, next + 1));
		take_value(scan, find_value_end(scan, &name, text[next]));
	} else if (text[name.start] == '-') {
		take_option(scan, &name, after, next);
	}
}

/* The end of the part of a URL that has user, password, host and port. */
static size_t find_authority_end(const struct scan *scan, size_t at)
{
	while (at < scan->length && !is_space(scan->text[at]) && !strchr("/?#\"'", scan->text[at]))
		at++;
	return at;
}

/*
 * The '@' after a password that contains characters which a URL must encode. 0: there is none, as
 * where a number after the colon is a port.
 */
static size_t find_late_at(struct scan *scan, size_t colon, size_t authority)
{
	const char *at;
	size_t end = authority;

	if (authority < scan->length && is_number(scan->text + colon + 1, authority - colon - 1))
		return 0;
	if (authority < scan->no_at)
		return 0;
	while (end < scan->length && !is_space(scan->text[end]))
		end++;
	at = memrchr(scan->text + authority, '@', end - authority);
	if (at)
		return (size_t)(at - scan->text);
	scan->no_at = end;
	return scan->is_cut && end == scan->length ? end : 0;
}

/* Writes the "://" at scan->at, and what follows up to the end of a password. */
static void take_url(struct scan *scan)
{
	const char *text = scan->text, *found;
	size_t start = scan->at + 3, end = find_authority_end(scan, start), colon, at;

	keep(scan, start);
	found = memchr(text + start, ':', end - start);
	if (!found)
		return;
	colon = (size_t)(found - text);
	found = memrchr(text + colon, '@', end - colon);
	if (found)
		at = (size_t)(found - text);
	else if (memchr(text + start, '@', colon - start))
		return;
	else
		at = find_late_at(scan, colon, end);
	if (!at)
		return;
	keep(scan, colon + 1);
	replace(scan, at);
}

static void take_argument(struct scan *scan)
{
	while (scan->at < scan->length) {
		const char *text = scan->text + scan->at;

		if (is_name(*text))
			take_name(scan);
		else if (scan->length - scan->at >= 3 && !memcmp(text, "://", 3))
			take_url(scan);
		else
			keep(scan, scan->at + 1);
	}
}

size_t redact_argument(struct redactor *redactor, const char *text, size_t length, bool is_cut,
		       char *to, size_t size)
{
	struct writer out = {.to = to, .size = size};
	struct scan scan = {.text = text,
			    .length = length,
			    .is_cut = is_cut,
			    .out = &out,
			    .redactor = redactor};

	*to = '\0';
	if (redactor->takes_values && !is_option(text, length)) {
		redactor->takes_values = take_value(&scan, length);
	} else {
		redactor->takes_values = false;
		take_argument(&scan);
	}
	return out.length;
}

size_t redact_arguments(const char *text, size_t length, bool is_cut, char *to, size_t size)
{
	struct redactor redactor = {false};
	size_t written = 0, end;

	*to = '\0';
	for (size_t at = 0; at < length; at = end + 1) {
		end = at + strnlen(text + at, length - at);
		written += redact_argument(&redactor, text + at, end - at, is_cut && end == length,
					   to + written, size - written);
		if (end + 1 < length && written + 1 < size) {
			to[written++] = ' ';
			to[written] = '\0';
		}
	}
	return written;
}

char *redact_text(struct redactor *redactor, const char *text, size_t *length)
{
	/* At worst each byte becomes REDACTED. */
	size_t size = *length * strlen(REDACTED) + 1;
	char *to = malloc(size);

	if (to)
		*length = redact_argument(redactor, text, *length, false, to, size);
	return to;
}
