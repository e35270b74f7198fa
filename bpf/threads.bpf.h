/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The slots of threads: finding the slot of a thread, giving one to a new thread, and the walk over
 * the slots that sums up the syscall time of a process.
 */
#ifndef FBT_THREADS_BPF_H
#define FBT_THREADS_BPF_H

#include <bpf/bpf_core_read.h>
#include "maps.bpf.h"
#include "times.bpf.h"

static const __u32 zero = 0;

/* Orders stores; x86 needs only a compiler barrier. */
#ifdef __TARGET_ARCH_x86
#define store_barrier() asm volatile("" ::: "memory")
#else
static __u64 barrier_word;
#define store_barrier() ((void)__sync_lock_test_and_set(&barrier_word, 1))
#endif

static __always_inline __u16 *slot_of_tid(__u32 tid)
{
	__u32 chunk = tid / FBT_IDS;
	struct fbt_ids *ids = bpf_map_lookup_elem(&thread_ids, &chunk);

	return ids ? &ids->slot[tid % FBT_IDS] : NULL;
}

/* The element of thread_stacks for the thread whose registers are at regs. */
static __always_inline __u64 *known_stack(__u64 regs)
{
	__u32 place = (regs >> FBT_STACK_SHIFT) % FBT_THREAD_STACKS;

	return bpf_map_lookup_elem(&thread_stacks, &place);
}

/* What that element has if the thread has slot 0. */
static __always_inline __u64 stack_key(__u64 regs)
{
	return regs & -(1ull << FBT_STACK_SHIFT);
}

/* Called when tracing of a thread begins, as another one may have used its stack; and ends. */
static __always_inline void forget_stack(struct task_struct *task)
{
	__u64 stack = (__u64)BPF_CORE_READ(task, stack);

	for (int i = 0; i < FBT_STACK_SPAN; i++) {
		__u64 *known = known_stack(stack + ((__u64)i << FBT_STACK_SHIFT));

		if (known)
			*known = 0;
	}
}

static __always_inline struct fbt_slot *find_thread(__u32 tid, __u32 *index)
{
	__u16 *id = slot_of_tid(tid);

	if (!id || !*id)
		return NULL;
	*index = *id;
	return bpf_map_lookup_elem(&slots, index);
}

/*
 * The current thread, whose registers are at regs, is not in thread_stacks: enters it there, and
 * returns the index of its slot, or 0. Not inlined: this is rare, and makes programs long.
 */
__noinline int learn_stack(__u64 regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 *known = known_stack(regs);
	__u16 *id = slot_of_tid(task->pid);
	__u32 index = id ? *id : 0;

	if (known)
		*known = stack_key(regs) | index;
	return index;
}

static __always_inline struct fbt_slot *current_slot(__u32 *index)
{
	return find_thread((__u32)bpf_get_current_pid_tgid(), index);
}

static __always_inline void count_lost(__u32 cause)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);

	if (c && cause < FBT_LOST_COUNT)
		__sync_fetch_and_add(&c->lost[cause], 1);
}

static __always_inline void count_explain_lost(__u32 kind)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);

	if (c && kind < FBT_EXPLAIN_COUNT)
		__sync_fetch_and_add(&c->explain_lost[kind], 1);
}

/* Takes a free slot and returns its index, or 0 if no slot is free. */
static __always_inline __u32 take_slot(void)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);

	if (!c)
		return 0;
	for (int i = 0; i < 16; i++) {
		__u64 head = c->free_head;
		__u32 place = head & free_mask;
		__u32 *slot = bpf_map_lookup_elem(&free_slots, &place);

		if (!slot || head == c->free_tail)
			return 0;
		__u32 index = *slot;

		if (__sync_val_compare_and_swap(&c->free_head, head, head + 1) == head)
			return index;
	}
	return 0;
}

static __always_inline void set_slot_tgid(__u32 index, __u32 tgid)
{
	struct fbt_slot_tgids *tgids = bpf_map_lookup_elem(&slot_tgids, &zero);

	/*
	 * A mask instead of a comparison: the compiler would compare one copy of index and use
	 * another, which the verifier rejects.
	 */
	if (tgids)
		tgids->tgid[index & (FBT_SLOTS_MAX - 1)] = tgid;
}

static __always_inline void begin_thread(struct task_struct *task)
{
	__u32 tgid = task->tgid, tid = task->pid;
	__u16 *id = slot_of_tid(tid);

	if (!id) {
		count_lost(FBT_LOST_THREADS);
		return;
	}
	/* The loader may have found the new thread in /proc before this program runs. */
	if (*id)
		return;
	forget_stack(task);
	__u32 index = take_slot();
	struct fbt_slot *slot = index ? bpf_map_lookup_elem(&slots, &index) : NULL;

	if (!slot) {
		count_lost(FBT_LOST_THREADS);
		return;
	}
	slot->tgid = tgid;
	slot->tid = tid;
	slot->born_ns = bpf_ktime_get_ns();
	slot->taken_ns = slot->born_ns;
	slot->born_cpu_ns = cpu_use_of(task);
	slot->born_delay_ns = run_delay_of(task);
	slot->state = FBT_SLOT_LIVE;
	set_slot_tgid(index, tgid);
	*id = index;
}

/* Time in syscalls, up to now, of all threads of a process, including those that have ended. */
struct busy_sum {
	__u64 now;
	__u64 ns;
	__u32 tgid;
	__u32 threads;
	__u32 unsure; /* a thread was ending during the walk */
	__u32 open;   /* threads that are in a call */
};

#define SLOTS_PER_WALK 8

/* Not inlined, so that the verifier checks it once, alone; the inlined walk would be too long. */
__noinline int walk_slots(struct busy_sum *sum, __u32 base)
{
	struct fbt_slot_tgids *tgids = bpf_map_lookup_elem(&slot_tgids, &zero);

	if (!sum || !tgids)
		return 0;
	for (__u32 i = 0; i < SLOTS_PER_WALK; i++) {
		__u32 index = base + i;

		if (index >= FBT_SLOTS_MAX || tgids->tgid[index] != sum->tgid)
			continue;
		struct fbt_slot *slot = bpf_map_lookup_elem(&slots, &index);

		if (!slot)
			break;
		__u64 busy = *(volatile __u64 *)&slot->busy;

		sum->ns += fbt_busy_ns(busy, sum->now);
		sum->open += busy & 1;
		sum->threads++;
	}
	return 0;
}

__noinline int sum_busy(struct busy_sum *sum)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);
	struct fbt_target_state *target;
	__u32 tgid, exits;

	if (!sum || !c)
		return 0;
	tgid = sum->tgid;
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!target)
		return 0;
	exits = *(volatile __u32 *)&target->exits_begun;
	sum->unsure = exits != *(volatile __u32 *)&target->exits_done;
	sum->ns = *(volatile __u64 *)&target->ended_busy_ns;
	for (__u32 base = 0; base < FBT_SLOTS_MAX; base += SLOTS_PER_WALK) {
		if (base > c->free_head)
			break;
		walk_slots(sum, base);
	}
	if (exits != *(volatile __u32 *)&target->exits_begun)
		sum->unsure = 1;
	return 0;
}

#endif
