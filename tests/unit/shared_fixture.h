/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The memory of fbt_shared.h from the heap, without a kernel. Include after cmocka.h. */
#ifndef FBT_SHARED_FIXTURE_H
#define FBT_SHARED_FIXTURE_H

#include <stdlib.h>
#include "kernel/shared.h"

static inline void *shared_alloc(size_t count, size_t size)
{
	void *memory = aligned_alloc(64, (count * size + 63) & ~(size_t)63);

	assert_non_null(memory);
	for (size_t i = 0; i < count * size; i++)
		((char *)memory)[i] = 0;
	return memory;
}

/* slot_count is a power of two; thread ids up to 2 * FBT_IDS - 1 have a place. */
static inline struct shared *shared_new(uint32_t slot_count, uint32_t cpu_count,
					uint32_t ring_shift)
{
	struct shared *shared = shared_alloc(1, sizeof(*shared));

	shared->id_chunks = 2;
	shared->slot_count = slot_count;
	shared->cpu_count = cpu_count;
	shared->ring_shift = ring_shift;
	shared->ids = shared_alloc(shared->id_chunks, sizeof(*shared->ids));
	shared->slots = shared_alloc(slot_count, sizeof(*shared->slots));
	shared->rows = shared_alloc((size_t)slot_count * FBT_NR_COUNT, sizeof(*shared->rows));
	shared->tgids = shared_alloc(slot_count, sizeof(*shared->tgids));
	shared->thread_stacks = shared_alloc(FBT_THREAD_STACKS, sizeof(*shared->thread_stacks));
	shared->free_slots = shared_alloc(slot_count, sizeof(*shared->free_slots));
	shared->control = shared_alloc(1, sizeof(*shared->control));
	shared->heads = shared_alloc(cpu_count, sizeof(*shared->heads));
	shared->calls = shared_alloc((size_t)cpu_count << ring_shift, sizeof(*shared->calls));
	shared->stack_count = 2;
	shared->stacks = shared_alloc(shared->stack_count, sizeof(*shared->stacks));
	shared->call_limits =
		shared_alloc(FBT_KIND_COUNT * FBT_LIMITS, sizeof(*shared->call_limits));
	return shared;
}

static inline void shared_free(struct shared *shared)
{
	free(shared->ids);
	free(shared->slots);
	free(shared->rows);
	free(shared->tgids);
	free(shared->thread_stacks);
	free(shared->free_slots);
	free(shared->control);
	free(shared->heads);
	free(shared->calls);
	free(shared->stacks);
	free(shared->call_limits);
	free(shared);
}

/* Slot of a thread; 0 if it has none. */
static inline uint32_t slots_find(const struct shared *shared, uint32_t tid)
{
	uint32_t chunk = tid / FBT_IDS;

	return chunk < shared->id_chunks ? shared->ids[chunk].slot[tid % FBT_IDS] : 0;
}

/* Keeps stores in the order of the text, as the JIT of the kernel does. */
#define store_order() __asm__ volatile("" ::: "memory")

/* handle_sys_enter of bpf/trace.bpf.c on the caller's own slot. */
static inline void play_enter(struct shared *shared, uint32_t index, uint32_t nr, uint64_t now)
{
	struct fbt_slot *slot = &shared->slots[index];

	slot->nr = nr;
	store_order();
	slot->start_ns = now;
	store_order();
	slot->busy -= (now << 1) - 1;
	store_order();
}

/* handle_sys_exit, without what it does for steps. */
static inline void play_exit(struct shared *shared, uint32_t index, int64_t ret, uint64_t now)
{
	struct fbt_slot *slot = &shared->slots[index];
	uint64_t duration = now - slot->start_ns;
	uint32_t nr = slot->nr < FBT_NR_COUNT ? slot->nr : FBT_NR_COUNT - 1;
	struct fbt_sum *row = &shared->rows[(size_t)index * FBT_NR_COUNT + nr];

	slot->start_ns = 0;
	store_order();
	slot->busy += (now << 1) - 1;
	store_order();
	row->calls++;
	store_order();
	row->ns += duration;
	store_order();
	row->errors += (uint64_t)ret >= (uint64_t)-4095;
	store_order();
	if (duration > row->max_ns)
		row->max_ns = duration;
	store_order();
}

#endif
