/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The classes of steps by key, in bounded memory: the one not asked for longest goes first. */
#ifndef FBT_CLASS_TABLE_H
#define FBT_CLASS_TABLE_H

#include <stdint.h>
#include "class_history.h"

#define CLASSES_MAX 1024
/* Steps of all classes together: 16 MiB. */
#define CLASS_STEPS_MAX 131072

struct class_table;

/* Of classes of window_steps (1 … CLASS_STEPS_MAX) steps. NULL: -ENOMEM. */
struct class_table *class_table__new(uint32_t window_steps);
void class_table__free(struct class_table *table);

/* NULL if it is not known. Valid until the next class_table__add. */
struct class_history *class_table__find(struct class_table *table, uint64_t key);

/* Adds a class that is not known. NULL: -ENOMEM. */
struct class_history *class_table__add(struct class_table *table, uint64_t key);

#endif
