/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* --list-steps: the functions of a process that may be its step, with their rates. */
#ifndef FBT_COMMANDS_LIST_STEPS_H
#define FBT_COMMANDS_LIST_STEPS_H

#include <stdio.h>
#include "options.h"

/*
 * Measures the candidates in the first process of options for two seconds, and prints them. 0 or
 * -errno, logged.
 */
int list_steps(const struct options *options, FILE *out);

#endif
