/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which functions of a process may be its step. */
#ifndef FBT_LIST_STEPS_H
#define FBT_LIST_STEPS_H

#include <stdio.h>
#include "options.h"

/* Prints the candidates with rates measured for two seconds; hint reads it. 0 or -errno, logged. */
int list_steps(const struct options *options, FILE *out);

#endif
