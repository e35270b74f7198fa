/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Gives small ids to the names that records point to, since a pointer means nothing outside the
 * process. A name is copied once. Its pointer is only a hint, and the text is compared each time,
 * because CUPTI reuses the memory of a kernel's name after a module is reloaded. The table is
 * bounded: names beyond FBT_GPU_NAMES_MAX, or beyond the memory, have id 0 until the next reader
 * comes. Call with the writer lock held.
 */
#ifndef FERRUM_NAME_TABLE_H
#define FERRUM_NAME_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"

#define NAME_TABLE_BYTES (4u << 20) /* of text: mangled templates have 500 bytes and more */

struct name_table;

/*
 * Allocates the table by mmap. It is never freed, because CUPTI's threads live as long as the
 * process. NULL: no memory.
 */
struct name_table *name_table__new(void);

/* The id of a name; 0: name is NULL, or there is no room. Long names are cut, see fbt_gpu.h. */
uint32_t name_table__intern(struct name_table *table, const char *name);

/* The text of an id from name_table__intern. */
const char *name_table__text(const struct name_table *table, uint32_t id);

/*
 * Whether the present reader has the name: name_table__set_sent was called since
 * name_table__forget.
 */
bool name_table__is_sent(const struct name_table *table, uint32_t id);
void name_table__set_sent(struct name_table *table, uint32_t id);

/*
 * Call for a new reader, which knows no names, when no record is being put. A table that is more
 * than half full is emptied, so that an engine that keeps loading kernels has names in the next
 * window too; all ids of before are then invalid. A reader takes a name that is sent again for the
 * new name of its id (fbt_gpu.h).
 */
void name_table__forget(struct name_table *table);

#endif
