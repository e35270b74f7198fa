/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which steps a step is compared with: those of the same process and kind whose work, or whose
 * argument that is named, has the same highest bit. Pure.
 */
#ifndef FBT_STEP_CLASS_H
#define FBT_STEP_CLASS_H

#include <stdbool.h>
#include "class_table.h"
#include "window.h"

/* A class that has fewer is not known. */
#define CLASS_KNOWN_STEPS 10

/*
 * Key of a step's class in the table. class_by: name of an argument, or NULL. By work where the
 * step has no such argument; 0 and less are a class of their own.
 */
uint64_t step_class_key(const struct window *window, const struct fbt_step *record,
			const char *class_by, uint64_t work_ns);

bool step_class_is_known(const struct class_history *history); /* NULL is not */

/*
 * The class to hold a step against: own, that of key, or while that is not known (it may be NULL)
 * the known one nearest by work of the same process and kind; own if there is none. What a trouble
 * leaves of its time in the work of a step must not hide it in a class of its own; and what is not
 * work changes little from one class to the next.
 */
struct class_history *step_class_find_known(struct class_table *classes, struct class_history *own,
					    uint64_t key);

#endif
