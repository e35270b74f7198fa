/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The BPF maps of fbt_shared.h, mapped by the loader; used by traced and by stream/. */
#ifndef FBT_KERNEL_SHARED_H
#define FBT_KERNEL_SHARED_H

#include <stddef.h>
#include <stdint.h>
#include "fbt_shared.h"

struct shared {
	struct fbt_ids *ids;
	uint32_t id_chunks;
	struct fbt_slot *slots;
	uint32_t slot_count;  /* a power of two; slot 0 is never used */
	struct fbt_sum *rows; /* slot_count * FBT_NR_COUNT */
	uint32_t *tgids;
	uint64_t *thread_stacks;
	/* uint64_t because the kernel rounds the elements of an array up to 8 bytes. */
	uint64_t *free_slots;
	struct fbt_control *control;
	const struct fbt_hits *hits; /* one per CPU */
	struct fbt_ring_heads *heads;
	struct fbt_ring_call *calls;
	struct fbt_stack_place *stacks;
	uint32_t stack_count;  /* places */
	uint64_t *call_limits; /* FBT_KIND_COUNT * FBT_LIMITS; see free_slots */
	uint32_t cpu_count;
	uint32_t ring_shift; /* log2 of the places per CPU */
};

/* NULL: the thread has no slot. The thread itself writes it meanwhile. */
static inline const volatile struct fbt_slot *shared_slot_of(const struct shared *shared,
							     uint32_t tid)
{
	const struct fbt_slot *slot;
	uint32_t index;

	if (tid / FBT_IDS >= shared->id_chunks)
		return NULL;
	index = shared->ids[tid / FBT_IDS].slot[tid % FBT_IDS];
	if (!index || index >= shared->slot_count)
		return NULL;
	slot = &shared->slots[index];
	return slot->state == FBT_SLOT_LIVE && slot->tid == tid ? slot : NULL;
}

/* The sum over all CPUs of a counter of a step kind. */
static inline uint64_t shared_sum_hits(const struct shared *shared, size_t counters, uint32_t kind)
{
	uint64_t total = 0;

	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++)
		total += __atomic_load_n(
			(const __u64 *)((const char *)&shared->hits[cpu] + counters) + kind,
			__ATOMIC_RELAXED);
	return total;
}

/* member: of struct fbt_hits */
#define SHARED_HITS(shared, member, kind)                                                          \
	shared_sum_hits(shared, offsetof(struct fbt_hits, member), kind)

#endif
