/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How large the tables and rings are made that are shared with the kernel. */
#ifndef FBT_SIZING_H
#define FBT_SIZING_H

#include "shared.h"

/*
 * Fills cpu_count, id_chunks, slot_count and ring_shift of shared, which is zero. ring_records:
 * places of each CPU's call ring, 0 for the default, which is less on a machine with many CPUs.
 * thread_count: threads there are now; room is made for that and many more.
 */
void sizing_choose(struct shared *shared, enum fbt_detail detail, uint32_t ring_records,
		   uint32_t thread_count);

#endif
