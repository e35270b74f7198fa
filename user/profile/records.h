/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A profile as records (fbt_event.h), so that it can be replayed as a recording is. A profile has
 * each step with its times, and sums of its calls. It lacks the calls themselves, stacks, threads,
 * GPU records, who stopped a step, and times below a microsecond; so causes are told by categories
 * of calls only, and a stop is time off the CPU.
 */
#ifndef FBT_PROFILE_RECORDS_H
#define FBT_PROFILE_RECORDS_H

#include "model/event.h"

/*
 * Sends the records of the last window in the file at path. 0; or -errno, logged: the file cannot
 * be read, or has no steps.
 */
int profile_send_records(const char *path, const struct record_output *output);

#endif
