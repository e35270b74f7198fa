/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Probed files that are written anew in place. The kernel keeps probes by inode and offset, so it
 * would put them into other code of the processes that map the new file: with -a, -f and COMMAND,
 * where links cover processes that are yet to begin.
 */
#ifndef FBT_TARGETS_REWRITTEN_H
#define FBT_TARGETS_REWRITTEN_H

#include "targets/live.h"

/* {0} at first. */
struct rewritten {
	uint64_t changed_ns;
};

/*
 * Call every few milliseconds. If there is such a file, removes all probes and has all processes
 * searched again. It is said when the writing begins: it may take long. Returns the kinds that are
 * given up for that, one bit each.
 */
uint64_t rewritten_turn(struct rewritten *rewritten, const struct live *live, uint64_t now_ns);

#endif
