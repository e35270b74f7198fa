/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Brings a COMMAND to its first own instruction with probes in place. The kernel side stops it
 * where execve returns, when the program and its dynamic loader are mapped, and again at the
 * program's entry, when the loader has mapped the libraries it is linked with. At both stops the
 * caller looks for step functions. If the tool dies meanwhile the program goes on: its parent death
 * signal is SIGCONT.
 */
#ifndef FBT_LAUNCH_H
#define FBT_LAUNCH_H

#include <stdbool.h>
#include "loader.h"

struct launch;

/* loader is borrowed. NULL: -ENOMEM. */
struct launch *launch__new(struct loader *loader, uint32_t tgid);
void launch__free(struct launch *launch);

/* It has called execve (again): it is about to stop. */
void launch__exec(struct launch *launch);

/* Whether it stands at a stop now: look for steps, then launch__continue. */
bool launch__is_stopped(const struct launch *launch);
void launch__continue(struct launch *launch);

/* Whether a stop is still to come. */
bool launch__is_pending(const struct launch *launch);

#endif
