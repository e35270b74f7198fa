/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Opens a loader for what the options select, and measures what its probes cost on this machine. */
#ifndef FBT_TRACE_LOADING_H
#define FBT_TRACE_LOADING_H

#include "kernel/loader.h"
#include "options.h"

/*
 * As loader__open, with room for the threads that the selected processes have now. First checks
 * that /proc and /sys are mounted and that there are enough file descriptors for a window; without
 * them, other parts would report missing processes, CPUs or kernel features.
 */
int loading_open(struct loader **loader, const struct options *options);

/*
 * Each traced process takes descriptors. The soft limit of 1024 that a login shell has is for
 * programs that use select(2); the tool does not.
 */
void loading_raise_files_limit(void);

/* Whether there is room for the threads that the selected processes have by now. Reads /proc. */
bool loading_has_room(struct loader *loader, const struct options *options);

/*
 * Attaches the syscall probes, unless --detail probes leaves them out, and measures their cost;
 * with_steps: also that of a step's probes. Leaves records in the rings. 0 or -errno, logged.
 */
int loading_attach_syscalls(struct loader *loader, bool with_steps, struct fbt_cost *cost);

/*
 * As loading_attach_syscalls, but with a loader of its own: nothing stays attached. explain_ps: as
 * in struct options.
 */
int loading_measure(const struct options *options, struct fbt_cost *cost,
		    uint64_t explain_ps[FBT_EXPLAIN_COUNT]);

#endif
