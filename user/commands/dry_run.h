/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * --dry-run with --gpu inject or --python inject: whether the libraries could be loaded into
 * processes, and why not.
 */
#ifndef FBT_COMMANDS_DRY_RUN_H
#define FBT_COMMANDS_DRY_RUN_H

#include <stdbool.h>
#include <stdio.h>
#include "options.h"

/*
 * Prints the verdict on each process; of Python also on the other processes of its engine. True if
 * in every process at least one of the libraries that were asked for is, or would be loaded. False,
 * logged, if there is no library to load or a process cannot be inspected. The others are inspected
 * all the same.
 */
bool inject_dry_run(const struct options *options, FILE *out);

#endif
