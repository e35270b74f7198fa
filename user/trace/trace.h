/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Tracing: one window from attach to detach, or one for each time that the flag appears. */
#ifndef FBT_TRACE_TRACE_H
#define FBT_TRACE_TRACE_H

#include "model/metadata.h"
#include "options.h"
#include "trace/flag.h"

/*
 * Traces one window. If a COMMAND has ended, *command_status is set to its exit status, or 128 +
 * the signal that killed it. 0, or -errno, logged.
 */
int trace_once(const struct options *options, int *command_status);

/*
 * Traces a window each time the flag appears, until the targets have ended, a signal comes or -d
 * has passed. A window that fails does not keep the next one from opening. 0, or the first -errno,
 * logged.
 */
int trace_by_flag(const struct options *options, struct flag *flag);

/*
 * Reads the recorded window of options->replay and writes the outputs, also from the readable part
 * of a damaged file. Options of the recording are added (option_judging.h). 0, or -errno, logged.
 */
int replay_run(struct options *options, const struct metadata *metadata);

#endif
