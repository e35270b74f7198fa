/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Tables by number: from a thread or process to a pointer, and marks of many numbers. */
#ifndef FBT_BASE_ID_MAP_H
#define FBT_BASE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tid_map;

struct tid_map *tid_map__new(void);	 /* NULL: -ENOMEM */
void tid_map__free(struct tid_map *map); /* what the values point to stays the caller's */
void *tid_map__get(const struct tid_map *map, uint64_t id); /* NULL if absent */

/* Sets or replaces; value is not NULL. 0 or -ENOMEM with the map unchanged. */
int tid_map__set(struct tid_map *map, uint64_t id, void *value);
void tid_map__remove(struct tid_map *map, uint64_t id); /* absent is no error */
size_t tid_map__count(const struct tid_map *map);

/*
 * What was seen of each of many numbers: up to four marks. Numbers close to each other take half a
 * byte each, one that is far from all others 150 bytes.
 */
struct id_set;

struct id_set *id_set__new(void); /* NULL: -ENOMEM */
void id_set__free(struct id_set *set);

/* Marks are the bits 1, 2, 4 and 8; a number without marks has 0. */
unsigned int id_set__marks(const struct id_set *set, uint64_t id);

/* Adds marks to those the number has: 0 or -ENOMEM. */
int id_set__mark(struct id_set *set, uint64_t id, unsigned int marks);

/* Finds a number with a mark of some that lacks a mark of missing. */
bool id_set__find(const struct id_set *set, unsigned int some, unsigned int missing, uint64_t *id);

#endif
