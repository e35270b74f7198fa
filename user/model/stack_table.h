/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Stacks of slow calls, kept until the step of the call comes. */
#ifndef FBT_MODEL_STACK_TABLE_H
#define FBT_MODEL_STACK_TABLE_H

#include "model/step.h"
#include "model/window.h"

struct stack_table {
	struct window *window;	      /* borrowed */
	VEC(struct fbt_stack) stacks; /* in the order in which they came */
};

/* Whether the table takes records of a type: what is about stacks. */
bool stack_table_takes(uint32_t type);

/*
 * Keeps a stack; a place of code, or how many stacks there are, goes to the window. 0, -ENOMEM, or
 * -ENOSPC if there is no room for a place of code.
 */
int stack_table_add(struct stack_table *table, const struct fbt_header *event);

/* Moves the stacks of a step to it, and drops those of earlier steps of its thread. */
void stack_table_join(struct stack_table *table, struct step *step);

void stack_table_clear(struct stack_table *table);

#endif
