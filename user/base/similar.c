/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/similar.h"

#include <string.h>

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t similar_distance(const char *a, const char *b)
{
	size_t rows[3][SIMILAR_MAX + 1], a_length = strlen(a), b_length = strlen(b);

	if (a_length > SIMILAR_MAX || b_length > SIMILAR_MAX)
		return SIMILAR_MAX;
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
