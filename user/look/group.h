/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Threads that do the same in the same place, together. Pure. */
#ifndef FBT_LOOK_GROUP_H
#define FBT_LOOK_GROUP_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_look.h"

/*
 * Makes groups of threads, each a record of one thread. The records of the groups are the first of
 * threads then: those whose threads' depth, given by the caller, is larger, then those of more
 * threads, equal ones by thread.
 * What differs within a group, the lock and its threads beyond FBT_LOOK_TIDS, is left out; call_ns
 * is that of the one that has been in its call for longest. Returns the number of groups.
 */
size_t look_group(struct fbt_look_thread *threads, size_t count);

#endif
