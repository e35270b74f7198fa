/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The records that say what a step kind is: its function, its arguments and how its calls end. */
#ifndef FBT_TARGETS_KIND_RECORD_H
#define FBT_TARGETS_KIND_RECORD_H

#include "steps/resolve.h"
#include "targets/live.h"

/*
 * Sends them, and warns of what the function cannot be measured by. tgid: the process in which it
 * was found first. 0 or -errno.
 */
int kind_record_send(const struct live *live, const struct step_function *function, uint32_t kind,
		     uint32_t tgid);

#endif
