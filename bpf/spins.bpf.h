/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The records of calls, and runs of calls that are all alike. A thread that spins makes 300,000
 * calls a second: of sched_yield, which has no arguments, or of poll and epoll_wait with the same
 * arguments and without a result. The second and later short ones of a row are summed up in the
 * thread's slot, and become one record (FBT_CALL_RUN) when another call returns, the thread is away
 * for longer, or its step ends. Counts and sums of calls are made elsewhere, for each call.
 */
#ifndef FBT_SPINS_BPF_H
#define FBT_SPINS_BPF_H

#include "threads.bpf.h"

#ifdef __TARGET_ARCH_x86
#define NR_SCHED_YIELD 24
#else
#define NR_SCHED_YIELD 124
#endif

/*
 * A place in the call ring of this CPU, or NULL: a record of that many calls is lost. The record is
 * valid once show_call() has set its lap.
 */
static __always_inline struct fbt_ring_call *reserve_call(struct fbt_slot *slot, __u32 calls,
							  __u64 *place)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct fbt_ring_heads *heads = bpf_map_lookup_elem(&ring_heads, &cpu);

	if (!heads)
		return NULL;
	if (*(volatile __u64 *)&heads->head - *(volatile __u64 *)&heads->tail >
	    ring_mask - FBT_RING_MARGIN) {
		__sync_fetch_and_add(&heads->lost, calls);
		slot->lost_calls += calls;
		return NULL;
	}
	*place = __sync_fetch_and_add(&heads->head, 1);
	__u32 at = (cpu << ring_shift) + (*place & ring_mask);

	return bpf_map_lookup_elem(&ring_calls, &at);
}

static __always_inline void show_call(struct fbt_ring_call *call, __u64 place)
{
	store_barrier();
	*(volatile __u32 *)&call->lap = (place >> ring_shift) + 1;
}

static __always_inline void send_call(struct fbt_slot *slot, __u32 index, __u64 start,
				      __u64 duration, long ret, __u32 flags, __u64 delay)
{
	__u64 place;
	struct fbt_ring_call *call = reserve_call(slot, 1, &place);

	if (!call)
		return;
	call->start_ns = start;
	call->duration_ns = duration;
	call->ret = ret;
	call->nr = slot->nr;
	call->slot = index;
	call->flags = flags;
	call->delay_ns = delay;
	if (flags) {
		call->args[0] = slot->call_args[0];
		call->args[1] = slot->call_args[1];
		call->file = slot->call_file;
	}
	show_call(call, place);
}

static __always_inline void send_run(struct fbt_slot *slot)
{
	__u64 place;
	struct fbt_ring_call *call = reserve_call(slot, slot->spin_calls, &place);

	if (!call)
		return;
	call->start_ns = slot->spin_start_ns;
	call->duration_ns = slot->spin_end_ns - slot->spin_start_ns;
	call->ret = 0;
	call->nr = slot->spin_nr;
	call->slot = slot->spin_slot;
	call->flags = FBT_CALL_RUN;
	call->delay_ns = slot->spin_delay_ns;
	call->args[0] = slot->spin_calls | (__u64)slot->spin_longest_ns << 32;
	call->args[1] = slot->spin_ns;
	call->file = slot->spin_file;
	show_call(call, place);
}

/*
 * The row has ended: another call has returned, or the step or the thread ends. Not inlined: it
 * would make the programs long, and few calls come after a row.
 */
__noinline int end_spin(struct fbt_slot *slot)
{
	if (!slot)
		return 0;
	if (slot->spin_calls)
		send_run(slot);
	slot->spin_calls = 0;
	slot->spin_end_ns = 0;
	return 0;
}

/* The call is like the one before, of the same step. Arguments are known of calls in steps only. */
static __always_inline bool is_alike(const struct fbt_slot *slot)
{
	if (!slot->spin_end_ns || slot->spin_nr != slot->nr ||
	    slot->spin_step_ns != slot->step_start_ns)
		return false;
	return slot->nr == NR_SCHED_YIELD ||
	       (slot->spin_args[0] == slot->call_args[0] &&
		slot->spin_args[1] == slot->call_args[1] && slot->spin_file == slot->call_file);
}

static __always_inline void begin_spin(struct fbt_slot *slot, __u32 index, __u64 now)
{
	bool has_args = slot->nr != NR_SCHED_YIELD;

	slot->spin_end_ns = now;
	slot->spin_step_ns = slot->step_start_ns;
	slot->spin_slot = index;
	slot->spin_nr = slot->nr;
	slot->spin_args[0] = has_args ? slot->call_args[0] : 0;
	slot->spin_args[1] = has_args ? slot->call_args[1] : 0;
	slot->spin_file = has_args ? slot->call_file : 0;
}

/*
 * A call that may be one of a row has returned 0. Returns 1 if it is summed up; else it is the
 * first of a row, or too long, and needs a record of its own.
 */
__noinline int sum_call(struct fbt_slot *slot, __u32 index, __u64 start, __u64 now, __u64 delay)
{
	__u64 duration = now - start;

	if (!slot)
		return 0;
	if (duration >= FBT_LONG_NS || !is_alike(slot) ||
	    start - slot->spin_end_ns > FBT_SPIN_GAP_NS) {
		end_spin(slot);
		if (duration < FBT_LONG_NS)
			begin_spin(slot, index, now);
		return 0;
	}
	if (slot->spin_calls && now - slot->spin_start_ns > FBT_RUN_MAX_NS) {
		send_run(slot);
		slot->spin_calls = 0;
	}
	if (!slot->spin_calls) {
		slot->spin_start_ns = start;
		slot->spin_ns = 0;
		slot->spin_delay_ns = 0;
		slot->spin_longest_ns = 0;
	}
	slot->spin_calls++;
	slot->spin_ns += duration;
	slot->spin_delay_ns += delay;
	if (duration > slot->spin_longest_ns)
		slot->spin_longest_ns = duration;
	slot->spin_end_ns = now;
	return 1;
}

/* sched_yield; or poll, ppoll, epoll_wait, epoll_pwait or epoll_pwait2, whose arguments are known.
 */
static __always_inline bool may_spin(__u32 how, __u32 flags)
{
	return !(flags & FBT_CALL_BLOCKED) && (how & FBT_TRAIT_YIELD || flags & FBT_CALL_ARGS);
}

/* A call of these traits has returned. True: it needs no record of its own. */
static __always_inline bool is_summed(struct fbt_slot *slot, __u32 how, __u32 index, __u64 start,
				      __u64 duration, long ret, __u32 flags, __u64 delay)
{
	if (how & (FBT_FD_POLLS | FBT_TRAIT_YIELD) && !ret && may_spin(how, flags))
		return sum_call(slot, index, start, start + duration, delay);
	if (slot->spin_end_ns)
		end_spin(slot);
	return false;
}

#endif
