/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The options that say which steps are wrong, as --cv-threshold. A recording keeps those that were
 * given, so that a replay judges as the trace did.
 */
#ifndef FBT_OPTION_JUDGING_H
#define FBT_OPTION_JUDGING_H

#include "options.h"

/*
 * Notes an option that was taken, as "NAME=VALUE" in options->judging_given, if it is one of them;
 * a later value replaces an earlier one. 0 or -ENOMEM.
 */
int option_judging_note(struct options *options, const char *name, const char *value);

/*
 * Takes count options of a recording, "NAME=VALUE". Those that were noted before have precedence.
 * Says which were taken, and which are no options of this kind or have no valid value; the latter
 * are left out. 0 or -ENOMEM.
 */
int option_judging_take(struct options *options, const char *const *texts, size_t count);

#endif
