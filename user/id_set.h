/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What was seen of each of many numbers: up to four marks. Numbers close to each other take half a
 * byte each, one that is far from all others 150 bytes.
 */
#ifndef FBT_ID_SET_H
#define FBT_ID_SET_H

#include <stdbool.h>
#include <stdint.h>

struct id_set;

struct id_set *id_set__new(void); /* NULL: -ENOMEM */
void id_set__free(struct id_set *set);

/* Marks are the bits 1, 2, 4 and 8; 0: of a number that has none. */
unsigned int id_set__marks(const struct id_set *set, uint64_t id);

/* Adds marks to those the number has: 0 or -ENOMEM. */
int id_set__mark(struct id_set *set, uint64_t id, unsigned int marks);

/* Finds a number with any of the marks in some, and not all of those in missing. */
bool id_set__find(const struct id_set *set, unsigned int some, unsigned int missing, uint64_t *id);

#endif
