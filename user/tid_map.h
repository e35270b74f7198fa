/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* From a thread or process number to a pointer: a hash table with open addressing. */
#ifndef FBT_TID_MAP_H
#define FBT_TID_MAP_H

#include <stddef.h>
#include <stdint.h>

struct tid_map;

struct tid_map *tid_map__new(void);	 /* NULL: -ENOMEM */
void tid_map__free(struct tid_map *map); /* what the values point to stays the caller's */
void *tid_map__get(const struct tid_map *map, uint32_t tid); /* NULL if absent */

/* Sets or replaces; value is not NULL. 0 or -ENOMEM with the map unchanged. */
int tid_map__set(struct tid_map *map, uint32_t tid, void *value);
void tid_map__remove(struct tid_map *map, uint32_t tid); /* absent is no error */
size_t tid_map__count(const struct tid_map *map);

#endif
