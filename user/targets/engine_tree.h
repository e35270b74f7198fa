/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The processes of a Python engine, of which -p names one: those with a step are traced, the others
 * are not, and the user is told which they are.
 */
#ifndef FBT_TRACE_ENGINE_TREE_H
#define FBT_TRACE_ENGINE_TREE_H

#include "targets/live.h"

struct engine_tree;

/* live is borrowed. NULL: -ENOMEM. */
struct engine_tree *engine_tree__new(const struct live *live);
void engine_tree__free(struct engine_tree *tree);

/*
 * Searches the other processes of the trees of those that -p names, and adds those with a Python
 * step. If there are any, a named process without a step is dropped. Says so. 0, or -errno, logged.
 */
int engine_tree__search(struct engine_tree *tree);

/* A process has become one with a step, and is traced from now on. Says so. 0 or -ENOMEM. */
int engine_tree__join(struct engine_tree *tree, const struct traced *traced);

/*
 * A step has ended. Two seconds after the first one it is told which processes have made none,
 * although they have the function: all processes of an engine load the modules of all.
 */
void engine_tree__take(struct engine_tree *tree, const struct fbt_step *step);

#endif
