/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Least privilege: from when a window is open (by flag: before the first one) this process can do
 * what the windows that the options ask for take, and no more. See confine_capabilities.h,
 * confine_filter.h; what takes more is done by a process that was forked before, see broker.h.
 */
#ifndef FBT_CONFINE_H
#define FBT_CONFINE_H

#include "options.h"

/* Before anything is loaded: forks the broker. */
void confine_prepare(const struct options *options);

/*
 * From here on, for good. What cannot be had is told of, and the window goes on: it is what the
 * user came for. Nothing is given up if there is no broker.
 */
void confine(const struct options *options);

/* Tells of our own calls that the filter has refused, each once. */
void confine_report(void);

/* The broker ends. */
void confine_finish(void);

#endif
