/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Who woke threads in calls of their steps, kept until the step comes. */
#ifndef FBT_MODEL_WOKEN_TABLE_H
#define FBT_MODEL_WOKEN_TABLE_H

#include "model/step.h"

struct woken_table {
	woken_vec wokens; /* in the order in which they came */
};

/* A later record of the same call replaces an earlier one. 0 or -ENOMEM. */
int woken_table_add(struct woken_table *table, const struct fbt_woken *woken);

/* Moves those of a step to it, and drops those of earlier steps of its thread. */
void woken_table_join(struct woken_table *table, struct step *step);

void woken_table_clear(struct woken_table *table);

#endif
