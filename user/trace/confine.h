/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Least privilege. Once a window is open (by flag: before the first one) this process keeps only
 * the rights that the windows of these options need; see sandbox/capabilities.h and
 * sandbox/filter.h. The broker, a process that is forked before, does what needs more; see
 * sandbox/broker.h.
 */
#ifndef FBT_TRACE_CONFINE_H
#define FBT_TRACE_CONFINE_H

#include "options.h"

/*
 * Starts the broker with the work that the options ask for, as broker_start. Call before anything
 * is loaded.
 *
 * From its first order on, the broker can gain no rights (no_new_privs), and has the capabilities
 * of sandbox_wanted_by_broker. It also has the filter of sandbox_broker_filter_apply, unless it
 * injects the shim. The child that searches for candidates reads the target's files, so it has
 * fewer capabilities, and always the filter. What cannot be given up is logged.
 */
void confine_broker_start(const struct options *options);

/*
 * Gives up rights, for good. What cannot be given up is logged, and the window continues, because
 * it is what the user wants. Without a broker nothing is given up.
 */
void confine(const struct options *options);

#endif
