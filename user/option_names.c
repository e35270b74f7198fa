/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_names.h"

#include <stdbool.h>
#include <string.h>

#include "base/similar.h"
#include "option_table.h"

const char *option_choose_nearer(const char *word, const char *best, const char *name)
{
	size_t found = similar_distance(word, name);
	bool is_near = found <= strlen(name) / 3 && (!best || found < similar_distance(word, best));

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
