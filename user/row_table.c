/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "row_table.h"

#include <string.h>

/* Where a number is, or belongs: they come in their order. */
static size_t find_position(const struct row_table *table, uint32_t nr)
{
	size_t position = table->rows.count;

	while (position && table->rows.items[position - 1].nr >= nr)
		position--;
	return position;
}

int row_table_set(struct row_table *table, const struct fbt_table *row)
{
	size_t position = find_position(table, row->nr);
	struct fbt_table *items;
	int err;

	if (row_table_find(table, row->nr)) {
		table->rows.items[position] = *row;
		return 0;
	}
	err = vec_push(&table->rows, *row);
	if (err)
		return err;
	items = table->rows.items;
	memmove(&items[position + 1], &items[position],
		(table->rows.count - 1 - position) * sizeof(*items));
	items[position] = *row;
	return 0;
}

const struct fbt_table *row_table_find(const struct row_table *table, uint32_t nr)
{
	size_t position = find_position(table, nr);

	if (position == table->rows.count || table->rows.items[position].nr != nr)
		return NULL;
	return &table->rows.items[position];
}

void row_table_clear(struct row_table *table)
{
	vec_free(&table->rows);
}
