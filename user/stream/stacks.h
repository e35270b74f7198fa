/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Samples the stacks of the busy threads of a process: which places of its code are on them. The
 * process is not stopped, probed or written to.
 */
#ifndef FBT_KERNEL_STACKS_H
#define FBT_KERNEL_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include "proc/maps.h"
#include "steps/find.h"

struct stacks {
	code_place_vec places; /* sorted by address, each once */
	uint32_t threads;      /* that were sampled: at most a few, the busiest ones */
	uint32_t samples;
	bool starved; /* the threads were short of CPUs */
};

/*
 * yields: samples nothing if the threads are short of CPUs. Samples for about a second; in the
 * first fifth of it the busy threads are chosen. Stacks are not unwound: whatever on them may be a
 * return address counts, so a few places may be left over from earlier calls.
 *
 * 0, also if no thread was busy; -ESRCH if the process has ended; -EACCES if the kernel does not
 * allow it; or another -errno. Without a message. Call stacks_clear in any case.
 */
int stacks_sample(struct stacks *stacks, uint32_t tgid, bool yields);
void stacks_clear(struct stacks *stacks);

/*
 * Adds the places in executable mappings that size bytes of a stack hold, as sample number sample
 * (from 1). 0 or -ENOMEM.
 */
int stacks_add(struct stacks *stacks, const mapping_vec *maps, uint32_t sample, const void *stack,
	       size_t size);

#endif
