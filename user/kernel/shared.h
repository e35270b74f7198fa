/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The BPF maps of fbt_shared.h, mapped by the loader; used by traced and by stream/. */
#ifndef FBT_KERNEL_SHARED_H
#define FBT_KERNEL_SHARED_H

#include <stdint.h>
#include "fbt_shared.h"

struct shared {
	struct fbt_ids *ids;
	uint32_t id_chunks;
	struct fbt_slot *slots;
	uint32_t slot_count;  /* a power of two; slot 0 is never used */
	struct fbt_sum *rows; /* slot_count * FBT_NR_COUNT */
	uint32_t *tgids;
	uint64_t *untraced_stacks;
	/* uint64_t because the kernel rounds the elements of an array up to 8 bytes. */
	uint64_t *free_slots;
	struct fbt_control *control;
	const struct fbt_hits *hits; /* one per CPU */
	struct fbt_ring_heads *heads;
	struct fbt_ring_call *calls;
	struct fbt_stack_place *stacks;
	uint32_t stack_count;  /* places */
	uint64_t *call_limits; /* FBT_KIND_COUNT * FBT_NR_COUNT; see free_slots */
	uint32_t cpu_count;
	uint32_t ring_shift; /* log2 of the places per CPU */
};

#endif
