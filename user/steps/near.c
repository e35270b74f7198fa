/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/near.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/format.h"
#include "base/similar.h"

/* A name that has the wanted one in it is as near as one with so many other letters. */
#define CONTAINED    2
#define CONTAINS_MIN 4
/* Names between two looks at the clock. */
#define CLOCK_NAMES  256
#define NAME_COLUMNS 64

/* The last part of a::b::c<d::e>::f: templates have parts of their own. */
static const char *last_part(const char *name)
{
	const char *part = name;
	int depth = 0;

	for (const char *at = name; *at; at++) {
		depth += *at == '<';
		depth -= *at == '>' && depth;
		if (!depth && at[0] == ':' && at[1] == ':')
			part = at + 2;
	}
	return part;
}

static void lower(char to[SIMILAR_MAX + 2], const char *from)
{
	size_t i = 0;

	for (; from[i] && i < SIMILAR_MAX + 1; i++)
		to[i] = (char)tolower((unsigned char)from[i]);
	to[i] = '\0';
}

/* SIMILAR_MAX: they are not alike. */
static size_t compare(const char *wanted, const char *name)
{
	char a[SIMILAR_MAX + 2], b[SIMILAR_MAX + 2];
	size_t most = strlen(wanted) / 3, found;

	lower(a, wanted);
	lower(b, name);
	if (!strcmp(a, b))
		return 0;
	if (strlen(a) >= CONTAINS_MIN && strstr(b, a))
		return CONTAINED;
	/* Words of other lengths need no closer look. */
	if (strlen(b) > strlen(a) + most || strlen(b) + most < strlen(a))
		return SIMILAR_MAX;
	found = similar_distance(a, b);
	return found <= most ? found : SIMILAR_MAX;
}

static void keep(struct near_names *near, const char *name, size_t distance)
{
	size_t place = near->count;

	for (size_t i = 0; i < near->count; i++)
		if (!strcmp(near->names[i].name, name))
			return;
	while (place && near->names[place - 1].distance > distance)
		place--;
	if (place == NEAR_NAMES)
		return;
	if (near->count < NEAR_NAMES)
		near->count++;
	memmove(&near->names[place + 1], &near->names[place],
		(near->count - 1 - place) * sizeof(near->names[0]));
	near->names[place].distance = distance;
	snprintf(near->names[place].name, sizeof(near->names[place].name), "%s", name);
}

static void add(struct near_names *near, const char *symbol)
{
	char *name = demangle_symbol(symbol);
	size_t whole, part;

	if (!name)
		return;
	whole = compare(near->wanted, name);
	part = compare(last_part(near->wanted), last_part(name));
	/* Other classes have functions of the same name. */
	if (part != SIMILAR_MAX && strcmp(last_part(near->wanted), near->wanted) != 0)
		part++;
	if (whole != SIMILAR_MAX || part < SIMILAR_MAX)
		keep(near, name, whole < part ? whole : part);
	free(name);
}

void near_names_add(struct near_names *near, const struct elf_symbols *symbols,
		    uint64_t deadline_ns)
{
	if (!*near->wanted)
		return;
	for (size_t i = 0; i < symbols->count; i++) {
		if (deadline_ns && i % CLOCK_NAMES == 0 && clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return;
		if (!symbol_is_cold(symbols->items[i].name) &&
		    !symbol_is_part(symbols->items[i].name))
			add(near, symbols->items[i].name);
	}
}

void near_names_text(const struct near_names *near, char *text, size_t size)
{
	struct line line = {text, size, 0};
	char name[4 * NAME_COLUMNS + 1];

	*text = '\0';
	for (size_t i = 0; i < near->count; i++)
		line_add(&line, "%s%s", i ? ", " : "; did you mean ",
			 shorten_text(name, sizeof(name), near->names[i].name, NAME_COLUMNS));
	if (near->count)
		line_add(&line, "?");
}
