/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which of some processes still live. A number that another process has got since is not theirs. */
#ifndef FBT_LIVING_H
#define FBT_LIVING_H

#include <stddef.h>
#include "option_value.h"

struct living;

/* 0; -ESRCH if there is no such process, or another -errno: logged. */
int living__new(struct living **living, const pid_vec *pids);
void living__free(struct living *living);

/* Those that live, in their order; borrowed, until the next living__look. */
const pid_vec *living__pids(const struct living *living);

/* Forgets those that have ended since, with a line for each while others are left. How many live.
 */
size_t living__look(struct living *living);

#endif
