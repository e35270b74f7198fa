/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* ferrum-bpftrace diff A B */
#ifndef FBT_COMMANDS_DIFF_H
#define FBT_COMMANDS_DIFF_H

#include <stdbool.h>
#include <stdio.h>
#include "options.h"

/*
 * Compares the two files of options, prints the report that is asked for to out, and writes the
 * page of --html. 0; -ENODATA, logged, if too little of them can be compared, and nothing that can
 * is a regression; or -errno, logged.
 */
int diff(const struct options *options, FILE *out, bool *has_regression);

#endif
