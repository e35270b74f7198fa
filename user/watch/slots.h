/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The files of metrics of watch's tracers. The first slot has the name that was given, the others
 * its stem with their number: by slot, not by PID, because the name is a label of the metrics, and
 * there must not be ever more.
 */
#ifndef FBT_WATCH_SLOTS_H
#define FBT_WATCH_SLOTS_H

#include <stdint.h>

#define SLOTS_MAX 16

/* path ends with ".prom", as options_complete has checked. Free it; NULL: -ENOMEM. */
char *slot_path(const char *path, unsigned int slot);

/* The lowest slot of which the bit is not set; 0: none. */
unsigned int slot_choose(uint32_t used);

/*
 * Deletes the files of slots that are not used (bit N: slot N) if they say that their tracer runs:
 * it was killed before it could write that it has ended, and nobody else will. A file of a slot
 * that is not in own may be that of a tracer that somebody else has started: it is deleted only if
 * it was not written for SLOT_OLD_S. Only regular files of ours with metrics of ours; no link is
 * followed. path NULL: there are none. A folder that cannot be opened is passed over in silence.
 */
void slots_sweep(const char *path, uint32_t used, uint32_t own);

/* Before the alert FerrumTracerGone fires, which is 300. */
#define SLOT_OLD_S 200

#endif
