/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The time of signal handlers within a step. The kernel delivers a signal on its way back to user
 * mode, when sys_exit of an interrupted call has already been traced. A handler ends in
 * rt_sigreturn, which a restarted call follows as a new one.
 *
 * Handlers that are left by siglongjmp or an exception never call it, so a depth counter would be
 * wrong for ever after. Instead a handler is known by the stack pointer of the code that it has
 * interrupted, which rt_sigreturn restores. Only what has returned is charged.
 */
#ifndef FBT_HANDLERS_BPF_H
#define FBT_HANDLERS_BPF_H

#include <bpf/bpf_core_read.h>
#include "times.bpf.h"

#ifdef __TARGET_ARCH_x86
#define STACK_OF(regs) ((regs)->sp)
#else
#define STACK_OF(regs) ((regs)->user_regs.sp)
#endif

/* SIG_DFL is 0. */
#define SIG_IGN 1

/*
 * A handler may make the interrupted code call a function when it goes on, as Go's does. The frames
 * of two handlers are farther apart on any stack.
 */
#define SAME_STACK 128

static __always_inline bool is_same_stack(__u64 one, __u64 other)
{
	return one - other + SAME_STACK <= 2 * SAME_STACK;
}

static __always_inline __u64 stack_of(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return STACK_OF(regs);
}

/*
 * Time of the current thread on a CPU outside of calls and of timed page faults, up to a constant
 * of the step. Valid while no call is open.
 */
static __always_inline __u64 own_clock(const struct fbt_slot *slot, struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns();

	return cpu_clock(task, now) - fbt_busy_ns(slot->busy, now) + slot->step_delay_ns +
	       slot->step_asleep_ns - slot->faults.cpu_ns;
}

static __always_inline void forget_handlers(struct fbt_slot *slot)
{
	slot->handler_depth = 0;
	slot->handlers_begun = 0;
	slot->handlers_done = 0;
	slot->handlers_ns = 0;
}

/* A signal of the current thread is delivered, in a step: its handler runs next. */
__noinline int enter_handler(struct fbt_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 sp = stack_of(task);
	__u32 depth;

	if (!slot)
		return 0;
	depth = slot->handler_depth;
	/* A handler that still runs would have its frame there: it was left. */
	for (__u32 i = 0; i < FBT_HANDLERS; i++) {
		if (i < depth && is_same_stack(slot->handlers[i].sp, sp))
			depth = i;
	}
	/* The oldest is most likely the one that was left. */
	if (depth >= FBT_HANDLERS) {
		for (__u32 i = 0; i + 1 < FBT_HANDLERS; i++)
			slot->handlers[i] = slot->handlers[i + 1];
		depth = FBT_HANDLERS - 1;
	}
	slot->handler_depth = depth + 1;
	slot->handlers_begun++;
	depth &= FBT_HANDLERS - 1;
	slot->handlers[depth].sp = sp;
	slot->handlers[depth].base_ns = own_clock(slot, task) - slot->handlers_ns;
	return 0;
}

/*
 * rt_sigreturn is about to return into the interrupted code, in a step. The time of handlers that
 * ran on top of this one is in its own.
 */
__noinline int leave_handler(struct fbt_slot *slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 sp = stack_of(task), ns;

	if (!slot)
		return 0;
	for (__u32 i = FBT_HANDLERS; i-- > 0;) {
		if (i >= slot->handler_depth || !is_same_stack(slot->handlers[i].sp, sp))
			continue;
		ns = own_clock(slot, task) - slot->handlers[i].base_ns;
		/* Of a call that an interrupt was in, the CPU clock has less than all. */
		if ((__s64)(ns - slot->handlers_ns) > 0)
			slot->handlers_ns = ns;
		slot->handlers_done++;
		slot->handler_depth = i;
		break;
	}
	return 0;
}

#endif
