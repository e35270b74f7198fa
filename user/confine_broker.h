/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The broker (broker.h) of a tool that gives its rights up: what it does for the windows that the
 * options ask for, and what is left to it and to those it starts. From its first order on it can
 * gain no right (no_new_privs), has the capabilities of confine_wanted_by_broker, and, but where it
 * puts the shim into processes, the filter of confine_broker_filter.h. What looks for candidates
 * reads the target's files: it has fewer, and always that filter.
 */
#ifndef FBT_CONFINE_BROKER_H
#define FBT_CONFINE_BROKER_H

#include "options.h"

/* As broker_start. What it cannot give up is told of, and it goes on. */
int confine_broker_start(const struct options *options);

#endif
