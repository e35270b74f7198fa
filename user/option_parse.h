/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Parses the command line. */
#ifndef FBT_OPTION_PARSE_H
#define FBT_OPTION_PARSE_H

#include "options.h"

/*
 * Parses the command line, and completes options from the environment. 0; -EINVAL: one line was
 * logged; -ENOMEM. --help and --version end the program. Strings are borrowed from argv and the
 * environment. Call options_clear in any case.
 */
int options_parse(struct options *options, int argc, char **argv);

#endif
