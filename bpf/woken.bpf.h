/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Who wakes a thread that waits in a call of its step: each wake-up of the machine comes by here,
 * and those of other threads leave after one look-up.
 *
 * In an interrupt the current task is not the waker, but whoever was interrupted. On x86-64 it is
 * one if the program's context does not lie on the stack of the task, since interrupts have stacks
 * of their own; an interrupt of user mode stays on the task's stack, but then the task is in no
 * system call.
 */
#ifndef FBT_WOKEN_BPF_H
#define FBT_WOKEN_BPF_H

#include <bpf/bpf_core_read.h>
#include "threads.bpf.h"

/* The least kernel stack of x86-64. An interrupt's stack never lies right behind one. */
#define KERNEL_STACK_BYTES 16384
#define IS_KERNEL_THREAD   0x00200000 /* PF_KTHREAD */
/* Threads of a process that run in the kernel only: PF_IO_WORKER, PF_USER_WORKER. */
#define IS_WORKER 0x00004010
/* preempt_count: in an interrupt, or in the part of one that is put off. */
#define IN_HARD_INTERRUPT 0x00ff0000
#define IN_SOFT_INTERRUPT 0x00000100

/* Where a program's context lies, as a number. One per CPU: interrupts are off meanwhile. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} contexts SEC(".maps");

#ifdef __TARGET_ARCH_x86
static __always_inline bool is_in_interrupt(struct task_struct *task, void *ctx)
{
	__u64 stack = (__u64)task->stack, at;
	__u64 *place = bpf_map_lookup_elem(&contexts, &zero);

	if (!place)
		return true;
	*(volatile __u64 *)place = (__u64)ctx;
	at = *(volatile __u64 *)place;
	if (at - stack >= KERNEL_STACK_BYTES)
		return true;
	if (task->flags & (IS_KERNEL_THREAD | IS_WORKER))
		return false;
	return (__s64)((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax < 0;
}

static __always_inline __u32 call_of(struct task_struct *task)
{
	__s64 nr = ((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax;

	return nr >= 0 && nr < FBT_NR_COUNT ? nr : FBT_NR_UNKNOWN;
}
#else
static __always_inline bool is_in_interrupt(struct task_struct *task, void *ctx)
{
	return task->thread_info.preempt.count & (IN_HARD_INTERRUPT | IN_SOFT_INTERRUPT);
}

static __always_inline __u32 call_of(struct task_struct *task)
{
	__s32 nr = ((struct pt_regs *)bpf_task_pt_regs(task))->syscallno;

	return nr >= 0 && nr < FBT_NR_COUNT ? nr : FBT_NR_UNKNOWN;
}
#endif

static __always_inline __u32 context_of(struct task_struct *waker, void *ctx, __u32 nr)
{
	bool is_kernel = waker->flags & IS_KERNEL_THREAD;

	if (!is_in_interrupt(waker, ctx))
		return is_kernel ? FBT_WOKEN_BY_KERNEL : FBT_WOKEN_BY_THREAD;
	if (!is_kernel && nr < FBT_NR_COUNT && (traits[nr] & FBT_FD_WRITES))
		return FBT_WOKEN_WHILE_SENDING;
	return FBT_WOKEN_BY_INTERRUPT;
}

/* The thread of slot is in a call that began at start. */
static __always_inline void send_woken(struct fbt_slot *slot, __u64 start, __u64 now, void *ctx)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct fbt_woken *woken = bpf_ringbuf_reserve(&events, sizeof(*woken), 0);
	__u32 nr = FBT_NR_UNKNOWN, context;

	if (!woken) {
		count_explain_lost(FBT_EXPLAIN_WAKES);
		return;
	}
	if (!(waker->flags & (IS_KERNEL_THREAD | IS_WORKER)))
		nr = call_of(waker);
	context = context_of(waker, ctx, nr);
	__builtin_memset(woken, 0, sizeof(*woken));
	woken->header.type = FBT_EVENT_WOKEN;
	woken->header.size = sizeof(*woken);
	woken->tgid = slot->tgid;
	woken->tid = slot->tid;
	woken->start_ns = start;
	woken->wake_ns = now;
	woken->context = context;
	woken->nr = FBT_NR_UNKNOWN;
	if (context != FBT_WOKEN_BY_INTERRUPT) {
		woken->nr = nr;
		woken->waker_tgid = waker->tgid;
		woken->waker_tid = waker->pid;
		if ((__u32)waker->tgid == slot->tgid)
			BPF_CORE_READ_INTO(&woken->comm, waker, comm);
		else
			BPF_CORE_READ_INTO(&woken->comm, waker, group_leader, comm);
	}
	bpf_ringbuf_submit(woken, BPF_RB_NO_WAKEUP);
}

static __always_inline void wake_thread(struct task_struct *task, void *ctx)
{
	__u32 index;
	struct fbt_slot *slot = find_thread(task->pid, &index);
	__u64 start, now;

	if (!slot || !slot->step_start_ns)
		return;
	start = *(volatile __u64 *)&slot->start_ns;
	now = bpf_ktime_get_ns();
	if (!start || now - start < FBT_LIMIT_MIN_NS || (__s64)(now - start) < 0)
		return;
	send_woken(slot, start, now, ctx);
}

#endif
