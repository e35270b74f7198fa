/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_names.h"

#include <stdbool.h>
#include <string.h>

#include "option_table.h"

/* Longer words are not typos of an option. */
#define WORD_MAX 32

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * The number of insertions, deletions, replacements and swaps of neighbours that turn one word into
 * the other.
 */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], a_length = strlen(a), b_length = strlen(b);

	if (a_length > WORD_MAX || b_length > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = min(min(row[j - 1], above[j]) + 1,
				     above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min(row[j], before[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

const char *option_choose_nearer(const char *word, const char *best, const char *name)
{
	size_t found = distance(word, name);
	bool is_near = found <= strlen(name) / 3 && (!best || found < distance(word, best));

	return is_near ? name : best;
}

const struct option_row *option_find(const char *name)
{
	for (size_t i = 0; i < option_table_count; i++) {
		if (option_table[i].name && !strcmp(option_table[i].name, name))
			return &option_table[i];
	}
	return NULL;
}

const char *option_similar(const char *word)
{
	const char *best = NULL;

	for (size_t i = 0; i < option_table_count; i++) {
		if (option_table[i].name)
			best = option_choose_nearer(word, best, option_table[i].name);
	}
	return best;
}
