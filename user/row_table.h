/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The exact sums of one process by syscall number: the rows that have come, of which most processes
 * have few. All 512 would be 28 KiB, for each child that made ten calls too.
 */
#ifndef FBT_ROW_TABLE_H
#define FBT_ROW_TABLE_H

#include <stdint.h>
#include "fbt_event.h"
#include "vec.h"

struct row_table {
	VEC(struct fbt_table) rows; /* by nr */
};

/* A later row of the same number replaces the earlier one. 0 or -ENOMEM. */
int row_table_set(struct row_table *table, const struct fbt_table *row);

/* NULL: none has come. Valid until the next row_table_set. */
const struct fbt_table *row_table_find(const struct row_table *table, uint32_t nr);
void row_table_clear(struct row_table *table);

#endif
