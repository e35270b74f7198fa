/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* argp_parse, but for what it says of an argument that it does not know. */
#ifndef FBT_OPTION_MESSAGES_H
#define FBT_OPTION_MESSAGES_H

#include <argp.h>

/*
 * getopt(3) prints the argument as it is, control characters and all: here that becomes one line of
 * log.h, which escapes it. As argp_parse else: 0 or an errno, and it ends the program for an
 * argument that is wrong, --help and --version.
 */
error_t option_messages_parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			      void *input);

#endif
