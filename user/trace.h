/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Tracing: one window, from attach to detach. */
#ifndef FBT_TRACE_H
#define FBT_TRACE_H

#include "metadata.h"
#include "options.h"

/* Traces what options select until that is over. 0, or -errno, logged. */
int trace_run(const struct options *options, const struct metadata *metadata);

#endif
