/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The options that say which steps are wrong. */
#ifndef FBT_OPTION_JUDGING_H
#define FBT_OPTION_JUDGING_H

#include "pipeline.h"

/* Takes one option: 0, EINVAL with one line logged, or ARGP_ERR_UNKNOWN: it is none of these. */
int option_parse_judging(struct pipeline_options *options, int key, const char *arg);

#endif
