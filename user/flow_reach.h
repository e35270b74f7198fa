/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which code of a function is reached by direct jumps. Where all of it is, a jump through a
 * register or memory has nowhere left to go but out: it is a tail call and no computed goto. Pure.
 */
#ifndef FBT_FLOW_REACH_H
#define FBT_FLOW_REACH_H

#include <stdbool.h>
#include "flow.h"

/*
 * Whether everything but padding in the pieces (pieces[0] begins with the entry) is reached. 0 with
 * *all set, or -ENOMEM.
 */
int flow_reach(const flow_vec *const *pieces, size_t count, bool *all);

#endif
