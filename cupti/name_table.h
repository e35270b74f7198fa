/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Names that records point to, as small numbers: a pointer means nothing outside of the process.
 * A name is copied once. Its pointer is only a hint where to look: CUPTI gives the memory of a
 * kernel's name to another one after a module is reloaded, so the text is compared each time.
 * Bounded: names beyond FBT_GPU_NAMES_MAX, or beyond the memory, have no number. Used under the
 * writer lock.
 */
#ifndef FERRUM_NAME_TABLE_H
#define FERRUM_NAME_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"

#define NAME_TABLE_BYTES (4u << 20) /* of text: mangled templates have 500 bytes and more */

struct name_table;

/* From mmap. NULL: no memory. */
struct name_table *name_table__new(void);
void name_table__free(struct name_table *table);

/* The id of a name; 0: it is NULL, or there is no room. Longer ones are cut, see fbt_gpu.h. */
uint32_t name_table__intern(struct name_table *table, const char *name);

/* The text of an id that intern gave. */
const char *name_table__text(const struct name_table *table, uint32_t id);

/* Whether the reader of this arming has the name: name_table__set_sent since …__forget. */
bool name_table__is_sent(const struct name_table *table, uint32_t id);
void name_table__set_sent(struct name_table *table, uint32_t id);

/* A new reader knows no names. Their numbers stay: an old one may still have records with them. */
void name_table__forget(struct name_table *table);

#endif
