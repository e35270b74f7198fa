/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Brings a COMMAND to its first own instruction with probes in place. The kernel side stops it
 * where execve returns, when the program and its dynamic loader are mapped, and again at the
 * program's entry, when the loader has mapped the libraries it is linked with. At both stops the
 * caller looks for step functions. Later calls of execve do not stop it. Should the tool die before
 * that is over, a guard, a process of its own, lets the program go on.
 */
#ifndef FBT_LAUNCH_H
#define FBT_LAUNCH_H

#include <stdbool.h>
#include "loader.h"

struct launch;

/* From now on tgid stops. loader is borrowed. 0 or -errno, logged. */
int launch__new(struct launch **launch, struct loader *loader, uint32_t tgid);
void launch__free(struct launch *launch);

/* Whether it stands at a stop now: look for steps, then launch__continue. */
bool launch__is_stopped(const struct launch *launch);
void launch__continue(struct launch *launch);

/* Whether it stands or stood at its last stop. */
bool launch__is_done(const struct launch *launch);

#endif
