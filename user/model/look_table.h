/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Threads that were seen from outside, kept until the step or the hang comes. */
#ifndef FBT_MODEL_LOOK_TABLE_H
#define FBT_MODEL_LOOK_TABLE_H

#include "model/step.h"
#include "model/window.h"

struct look_table {
	struct window *window; /* borrowed */
	look_vec threads;      /* in the order in which they came */
};

bool look_table_takes(uint32_t type);

/*
 * Keeps a thread; a look at a hang takes its threads to the window, and so does how many looks
 * there were. 0 or -ENOMEM.
 */
int look_table_add(struct look_table *table, const struct fbt_header *event);

/* Moves the looks at calls of a step to it, and drops those of earlier steps of its thread. */
void look_table_join(struct look_table *table, struct step *step);

void look_table_clear(struct look_table *table);

#endif
