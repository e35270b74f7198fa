/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The stack of a call of a step that took longer than its limit, or with which many short calls
 * have come to theirs, copied when the call returns, and that of the thread that ended it, when it
 * did: the registers in user mode, and what lies between
 * the stack pointer and the frame of the step's function. It is unwound by the loader. See struct
 * fbt_stack_place.
 */
#ifndef FBT_STACKS_BPF_H
#define FBT_STACKS_BPF_H

#include "calls.bpf.h"
#include "registers.bpf.h"

#define PAGE_BYTES 4096

/* A page at most; a larger page of the kernel is read in parts. */
#define STACK_READS (FBT_STACK_BYTES / PAGE_BYTES + 1)

static __always_inline __u64 sp_of(const struct fbt_stack_place *place)
{
#ifdef __TARGET_ARCH_x86
	return place->registers[7];
#else
	return place->registers[31];
#endif
}

/*
 * To the end of the stack pointer's page first and then by whole pages: a read that runs over the
 * end of the stack fails as a whole.
 */
static __always_inline __u32 copy_stack(struct fbt_stack_place *place, __u64 sp, __u64 wanted)
{
	__u32 at = 0;

	/* Unrolled: 5.15 takes a loop whose counter it has spilled for one without an end. */
#pragma unroll
	for (int i = 0; i < STACK_READS; i++) {
		__u32 size = PAGE_BYTES - ((sp + at) & (PAGE_BYTES - 1));

		if (at >= wanted || at > FBT_STACK_BYTES - PAGE_BYTES)
			break;
		if (size > wanted - at)
			size = wanted - at;
		/* The compiler knows the bound and would leave it out; the verifier does not. */
		asm volatile("" : "+r"(size));
		size &= 2 * PAGE_BYTES - 1;
		if (size > PAGE_BYTES ||
		    bpf_probe_read_user(place->stack + at, size, (void *)(sp + at)))
			break;
		at += size;
	}
	return at;
}

/* At most so many in a turn. */
static __always_inline bool may_copy(struct fbt_control *c, __u64 now, __u32 most)
{
	__u32 turn = now >> FBT_TURN_SHIFT;

	if (c->stack_turn != turn) {
		c->stack_turn = turn;
		c->stack_count = 0;
	}
	return c->stack_count < most && __sync_fetch_and_add(&c->stack_count, 1) < most;
}

static __always_inline struct fbt_stack_place *take_place(struct fbt_control *c)
{
	__u32 index = __sync_fetch_and_add(&c->stack_head, 1) % FBT_STACK_PLACES;
	struct fbt_stack_place *place = bpf_map_lookup_elem(&stack_places, &index);

	if (!place || __sync_val_compare_and_swap(&place->state, FBT_PLACE_FREE, FBT_PLACE_TAKEN) !=
			      FBT_PLACE_FREE)
		return NULL;
	return place;
}

static __always_inline __u64 limit_of(const struct fbt_slot *slot, __u32 which)
{
	__u32 at = (slot->step_kind & (FBT_KIND_COUNT - 1)) * FBT_LIMITS + which;
	__u32 *limit = bpf_map_lookup_elem(&call_limits, &at);
	__u64 ns = limit ? (__u64)*limit << FBT_LIMIT_SHIFT : ~0ull;

	return ns > FBT_LIMIT_MIN_NS ? ns : FBT_LIMIT_MIN_NS;
}

/*
 * Whether a call of that thread's step, open since start, takes longer than its limit. Where it is
 * a wait that has begun on another CPU, start may be later than now.
 */
static __always_inline bool is_slow(const struct fbt_slot *slot, __u64 start, __u64 now)
{
	return (__s64)(now - start) >= (__s64)FBT_LIMIT_MIN_NS &&
	       now - start >= limit_of(slot, slot->nr % FBT_NR_COUNT);
}

/*
 * Copies the stack of the current thread, whose slot is owner, for a call of the thread of slot
 * that began at start, if there were less than most in this turn. Returns whether there was a place
 * for it.
 */
static __always_inline bool copy_for(struct fbt_slot *owner, struct fbt_slot *slot, __u64 start,
				     __u64 now, __u32 most)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);
	struct fbt_stack_place *place;
	__u64 begun = bpf_ktime_get_ns(), sp, wanted = FBT_STACK_BYTES;

	if (!c)
		return false;
	place = may_copy(c, now, most) ? take_place(c) : NULL;
	if (!place) {
		if (most == FBT_STACKS_PER_TURN)
			__sync_fetch_and_add(&c->stacks_skipped, 1);
		return false;
	}
	place->tgid = slot->tgid;
	place->tid = slot->tid;
	place->owner = owner->tid;
	place->nr = slot->nr;
	place->start_ns = start;
	read_registers(place->registers, bpf_get_current_task_btf());
	sp = sp_of(place);
	/* A step that began on another stack, or whose begin was seen deeper: all that there is. */
	place->step_sp = owner->step_start_ns && owner->step_sp >= sp ? owner->step_sp : 0;
	if (place->step_sp && place->step_sp - sp < FBT_STACK_BYTES - 8)
		wanted = place->step_sp - sp + 8;
	place->bytes = copy_stack(place, sp, wanted);
	place->copy_ns = bpf_ktime_get_ns() - begun;
	store_barrier();
	*(volatile __u32 *)&place->state = FBT_PLACE_READY;
	return true;
}

/* Called when a call of a step that took FBT_LIMIT_MIN_NS or longer returns. */
__noinline int copy_slow_call(struct fbt_slot *slot, __u64 start, __u64 now)
{
	if (slot && is_slow(slot, start, now))
		copy_for(slot, slot, start, now, FBT_STACKS_PER_TURN);
	return 0;
}

/*
 * Called when the calls of a step have come to the limit of their category: the stack of the one
 * that did it stands for them all. The next one is copied when they have taken twice as long. A
 * long call that comes to the limit has one of its own, and moves this one on by its time.
 */
__noinline int copy_short_call(struct fbt_slot *slot, __u32 which, __u64 start, __u64 duration)
{
	__u64 ns, limit_ns;

	if (!slot || which >= FBT_CATEGORY_COUNT)
		return 0;
	ns = slot->sums[which].ns;
	limit_ns = slot->sum_limits_ns[which];
	if (!limit_ns)
		limit_ns = limit_of(slot, FBT_NR_COUNT + which);
	if (duration >= FBT_LIMIT_MIN_NS) {
		limit_ns += duration;
	} else if (ns >= limit_ns) {
		copy_for(slot, slot, start, start + duration, FBT_SHORT_STACKS_PER_TURN);
		limit_ns = 2 * ns;
	}
	slot->sum_limits_ns[which] = limit_ns;
	return 0;
}

/*
 * Called when the thread of slot ends a wait that has taken FBT_LIMIT_MIN_NS or longer, or wakes
 * threads at the address of one that is over.
 */
__noinline int copy_waker(struct fbt_wait *wait, struct fbt_slot *slot)
{
	struct fbt_slot *waiter;
	__u32 index;

	if (!wait || !slot)
		return 0;
	index = wait->slot;
	waiter = bpf_map_lookup_elem(&slots, &index);
	if (waiter && waiter->step_start_ns && waiter->start_ns == wait->start_ns &&
	    is_slow(waiter, wait->start_ns, slot->start_ns))
		copy_for(slot, waiter, wait->start_ns, slot->start_ns, FBT_STACKS_PER_TURN);
	return 0;
}

#endif
