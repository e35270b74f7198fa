/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Tracing: one window from attach to detach, or one for each time that a flag is there. */
#ifndef FBT_TRACE_H
#define FBT_TRACE_H

#include "flag.h"
#include "options.h"

/* One window, until that is over. 0, or -errno, logged. */
int trace_once(const struct options *options);

/*
 * A window for each time that the flag is there, until the targets have ended, a signal or the time
 * limit. What fails in a window does not keep the next from opening. 0, or the first -errno,
 * logged.
 */
int trace_by_flag(const struct options *options, struct flag *flag);

#endif
