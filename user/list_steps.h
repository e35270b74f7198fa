/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which functions of a process may be its step: --list-steps, and the hint when no step is seen. */
#ifndef FBT_LIST_STEPS_H
#define FBT_LIST_STEPS_H

#include <stdio.h>
#include "options.h"

/* Prints the candidates with rates measured for two seconds. 0 or -errno, logged. */
int list_steps(const struct options *options, FILE *out);

/* Watches candidates beside a running window: begin, check now and then, and say what was seen. */
struct hint;

struct hint *hint__begin(const struct options *options, uint32_t tgid); /* NULL: nothing to watch */

/* True once it has said what it has to say. */
bool hint__check(struct hint *hint);
void hint__free(struct hint *hint);

#endif
