/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include "slots.h"

/* A try takes 1 to 2 us: a thread that makes calls all the time leaves such gaps often enough. */
#define READ_TRIES 64

void slots_init(struct shared *shared)
{
	for (uint32_t i = 1; i < shared->slot_count; i++)
		shared->free_slots[i - 1] = i;
	shared->control->free_head = 0;
	__atomic_store_n(&shared->control->free_tail, shared->slot_count - 1, __ATOMIC_RELEASE);
}

static uint16_t *slot_id(const struct shared *shared, uint32_t tid)
{
	uint32_t chunk = tid / FBT_IDS;

	return chunk < shared->id_chunks ? &shared->ids[chunk].slot[tid % FBT_IDS] : NULL;
}

uint32_t slots_find(const struct shared *shared, uint32_t tid)
{
	uint16_t *id = slot_id(shared, tid);

	return id ? __atomic_load_n(id, __ATOMIC_ACQUIRE) : 0;
}

static uint32_t pop_free(struct shared *shared)
{
	struct fbt_control *control = shared->control;
	__u64 head = __atomic_load_n(&control->free_head, __ATOMIC_ACQUIRE);

	while (head != control->free_tail) {
		uint32_t slot = shared->free_slots[head & (shared->slot_count - 1)];

		if (__atomic_compare_exchange_n(&control->free_head, &head, head + 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return slot;
	}
	return 0;
}

int slots_take(struct shared *shared, uint32_t tgid, uint32_t tid, uint64_t now_ns)
{
	uint16_t *id = slot_id(shared, tid);
	uint16_t none = 0;
	uint32_t index;
	struct fbt_slot *slot;

	if (!id)
		return -ENOSPC;
	if (__atomic_load_n(id, __ATOMIC_ACQUIRE))
		return 0;
	index = pop_free(shared);
	if (!index)
		return -ENOSPC;
	slot = &shared->slots[index];
	slot->tgid = tgid;
	slot->tid = tid;
	slot->born_ns = now_ns;
	slot->state = FBT_SLOT_LIVE;
	shared->tgids[index] = tgid;
	if (__atomic_compare_exchange_n(id, &none, (uint16_t)index, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return (int)index;
	slots_give_back(shared, index);
	return 0;
}

void slots_forget_strangers(struct shared *shared)
{
	memset(shared->strangers, 0, FBT_STRANGERS * sizeof(*shared->strangers));
}

void slots_mark_blocked(struct shared *shared, uint32_t slot)
{
	shared->slots[slot].born_ns = UINT64_MAX;
}

void slots_end(struct shared *shared, uint32_t tid, uint64_t now_ns)
{
	uint16_t *id = slot_id(shared, tid);
	uint32_t index = id ? __atomic_exchange_n(id, 0, __ATOMIC_ACQ_REL) : 0;

	if (!index)
		return;
	shared->tgids[index] = 0;
	shared->slots[index].died_ns = now_ns;
	__atomic_store_n(&shared->slots[index].state, FBT_SLOT_DEAD, __ATOMIC_RELEASE);
}

static uint64_t copy_rows(const struct shared *shared, uint32_t slot, struct fbt_sum *rows)
{
	uint64_t ns = 0;

	memcpy(rows, shared->rows + (size_t)slot * FBT_NR_COUNT, sizeof(*rows) * FBT_NR_COUNT);
	for (int nr = 0; nr < FBT_NR_COUNT; nr++)
		ns += rows[nr].ns;
	return ns;
}

static void add_rows(struct process_sums *sums, const struct fbt_sum *rows)
{
	for (int nr = 0; nr < FBT_NR_COUNT; nr++) {
		struct fbt_sum *to = &sums->rows[nr];

		to->ns += rows[nr].ns;
		to->calls += rows[nr].calls;
		to->errors += rows[nr].errors;
		if (rows[nr].max_ns > to->max_ns)
			to->max_ns = rows[nr].max_ns;
	}
}

bool slots_add(const struct shared *shared, uint32_t index, uint64_t now_ns,
	       struct process_sums *sums)
{
	const volatile struct fbt_slot *slot = &shared->slots[index];
	struct fbt_sum rows[FBT_NR_COUNT];
	bool consistent = false;
	uint64_t start = 0, busy, ns;
	uint32_t nr = 0;

	for (int i = 0; i < READ_TRIES && !consistent; i++) {
		busy = slot->busy;
		start = slot->start_ns;
		nr = slot->nr;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		ns = copy_rows(shared, index, rows);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		consistent = slot->busy == busy && !!start == (busy & 1) &&
			     ns == fbt_busy_ns(busy, start);
	}
	add_rows(sums, rows);
	if (start) {
		nr = nr < FBT_NR_COUNT ? nr : FBT_NR_COUNT - 1;
		sums->unfinished[nr]++;
		if (now_ns > start && slot->state == FBT_SLOT_LIVE)
			sums->open_ns[nr] += now_ns - start;
	}
	/* What it did before its first call here is not known: no time of its is computing. */
	if (slot->state == FBT_SLOT_DEAD)
		now_ns = slot->died_ns;
	if (slot->born_ns == UINT64_MAX && (start || ns))
		shared->slots[index].born_ns = now_ns;
	ns = now_ns;
	if (ns > slot->born_ns)
		sums->thread_ns += ns - slot->born_ns;
	if (slot->state == FBT_SLOT_LIVE)
		sums->threads++;
	return consistent;
}

void slots_give_back(struct shared *shared, uint32_t index)
{
	struct fbt_control *control = shared->control;

	shared->tgids[index] = 0;
	memset(&shared->slots[index], 0, sizeof(shared->slots[index]));
	memset(shared->rows + (size_t)index * FBT_NR_COUNT, 0,
	       sizeof(*shared->rows) * FBT_NR_COUNT);
	shared->free_slots[control->free_tail & (shared->slot_count - 1)] = index;
	__atomic_store_n(&control->free_tail, control->free_tail + 1, __ATOMIC_RELEASE);
}
