/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "call_ring.h"

/* One CPU's ring during a drain; the heap orders CPUs by the return of their next call. */
struct cursor {
	uint64_t end_ns;
	uint64_t tail;
	uint32_t cpu;
};

struct call_ring {
	struct shared *shared;
	struct cursor *heap;
	uint32_t count;
};

struct call_ring *call_ring__new(struct shared *shared)
{
	struct call_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->shared = shared;
	ring->heap = calloc(shared->cpu_count, sizeof(*ring->heap));
	if (!ring->heap) {
		free(ring);
		return NULL;
	}
	return ring;
}

void call_ring__free(struct call_ring *ring)
{
	if (!ring)
		return;
	free(ring->heap);
	free(ring);
}

static const struct fbt_ring_call *call_at(const struct call_ring *ring,
					   const struct cursor *cursor)
{
	uint32_t shift = ring->shared->ring_shift;
	uint64_t place = cursor->tail & ((1ull << shift) - 1);

	return &ring->shared->calls[((uint64_t)cursor->cpu << shift) + place];
}

/* Looks at the cursor's next call: false if there is none up to cutoff_ns. */
static bool cursor_load(const struct call_ring *ring, struct cursor *cursor, uint64_t cutoff_ns)
{
	const struct fbt_ring_call *call = call_at(ring, cursor);
	uint32_t lap = (uint32_t)(cursor->tail >> ring->shared->ring_shift) + 1;

	if (__atomic_load_n(&call->lap, __ATOMIC_ACQUIRE) != lap)
		return false;
	cursor->end_ns = call->start_ns + call->duration_ns;
	return cursor->end_ns <= cutoff_ns;
}

static void heap_sink(struct call_ring *ring, uint32_t at)
{
	struct cursor moving = ring->heap[at];

	for (;;) {
		uint32_t child = at * 2 + 1;

		if (child >= ring->count)
			break;
		if (child + 1 < ring->count &&
		    ring->heap[child + 1].end_ns < ring->heap[child].end_ns)
			child++;
		if (ring->heap[child].end_ns >= moving.end_ns)
			break;
		ring->heap[at] = ring->heap[child];
		at = child;
	}
	ring->heap[at] = moving;
}

static void heap_fill(struct call_ring *ring, uint64_t cutoff_ns)
{
	ring->count = 0;
	for (uint32_t cpu = 0; cpu < ring->shared->cpu_count; cpu++) {
		struct cursor cursor = {.cpu = cpu, .tail = ring->shared->heads[cpu].tail};

		if (cursor_load(ring, &cursor, cutoff_ns))
			ring->heap[ring->count++] = cursor;
	}
	for (uint32_t i = ring->count / 2; i-- > 0;)
		heap_sink(ring, i);
}

static void hand_on(const struct call_ring *ring, const struct fbt_ring_call *from, call_fn on_call,
		    void *ctx)
{
	const struct fbt_slot *slot =
		&ring->shared->slots[from->slot & (ring->shared->slot_count - 1)];
	struct fbt_call call = {
		.header = {.type = FBT_EVENT_CALL, .flags = from->flags, .size = sizeof(call)},
		.tgid = slot->tgid,
		.tid = slot->tid,
		.start_ns = from->start_ns,
		.duration_ns = from->duration_ns,
		.ret = from->ret,
		.nr = from->nr,
	};

	if (from->flags & FBT_CALL_ARGS) {
		call.args[0] = from->args[0];
		call.args[1] = from->args[1];
		call.file = from->file;
	}
	on_call(ctx, &call);
}

/* Gives places back in portions, so that a long drain does not starve a busy CPU of room. */
#define GIVE_BACK 1024

uint64_t call_ring__drain(struct call_ring *ring, uint64_t cutoff_ns, call_fn on_call, void *ctx)
{
	uint64_t drained = 0;

	heap_fill(ring, cutoff_ns);
	while (ring->count) {
		struct cursor *first = &ring->heap[0];
		__u64 *tail = &ring->shared->heads[first->cpu].tail;

		hand_on(ring, call_at(ring, first), on_call, ctx);
		drained++;
		first->tail++;
		if (cursor_load(ring, first, cutoff_ns)) {
			if (first->tail - *tail >= GIVE_BACK)
				__atomic_store_n(tail, first->tail, __ATOMIC_RELEASE);
		} else {
			__atomic_store_n(tail, first->tail, __ATOMIC_RELEASE);
			*first = ring->heap[--ring->count];
		}
		if (ring->count)
			heap_sink(ring, 0);
	}
	return drained;
}

uint64_t call_ring__lost(const struct call_ring *ring)
{
	uint64_t lost = 0;

	for (uint32_t cpu = 0; cpu < ring->shared->cpu_count; cpu++)
		lost += __atomic_load_n(&ring->shared->heads[cpu].lost, __ATOMIC_RELAXED);
	return lost;
}

void call_ring__reset_lost(struct call_ring *ring)
{
	for (uint32_t cpu = 0; cpu < ring->shared->cpu_count; cpu++)
		__atomic_store_n(&ring->shared->heads[cpu].lost, 0, __ATOMIC_RELAXED);
}
