/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "file_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where an id is, or belongs: they come in about their order. */
static size_t find_position(const struct file_table *table, uint32_t id)
{
	size_t low = 0, high = table->files.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->files.items[middle].record.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int file_table_add(struct file_table *table, const struct fbt_file *record, const char *path)
{
	struct file file = {.record = *record, .path = strdup(path)};
	size_t position = find_position(table, record->id);
	struct file *items;
	int err = 0;

	if (!file.path)
		return -ENOMEM;
	if (file_table_find(table, record->id)) {
		free(table->files.items[position].path);
		table->files.items[position] = file;
		return 0;
	}
	if (table->files.count >= FILE_TABLE_MAX)
		err = -ENOSPC;
	else
		err = vec_push(&table->files, file);
	if (err) {
		free(file.path);
		return err;
	}
	items = table->files.items;
	memmove(&items[position + 1], &items[position],
		(table->files.count - 1 - position) * sizeof(file));
	items[position] = file;
	return 0;
}

const struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	size_t position = find_position(table, id);

	if (position == table->files.count || table->files.items[position].record.id != id)
		return NULL;
	return &table->files.items[position];
}

void file_table_clear(struct file_table *table)
{
	vec_for_each (file, &table->files)
		free(file->path);
	vec_free(&table->files);
}
