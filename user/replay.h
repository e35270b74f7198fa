/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A recorded window to outputs. */
#ifndef FBT_REPLAY_H
#define FBT_REPLAY_H

#include "metadata.h"
#include "options.h"

/*
 * Reads options->replay and writes what the options name. What could be read of a damaged file is
 * written too. 0, or -errno, logged.
 */
int replay_run(const struct options *options, const struct metadata *metadata);

#endif
