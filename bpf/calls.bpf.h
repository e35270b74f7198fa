/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What is known of a call in a step beside its time. All of it is read when the call is entered:
 * its registers are still the caller's, and its descriptor still names the file it will work on.
 */
#ifndef FBT_CALLS_BPF_H
#define FBT_CALLS_BPF_H

#include "threads.bpf.h"

/* CONFIG_SCHED_INFO. */
#define has_run_delay(task) bpf_core_field_exists((task)->sched_info.run_delay)

/*
 * How long the thread has waited for a CPU. The kernel adds a wait when it is over, so to the
 * thread itself the figure is exact.
 */
static __always_inline __u64 run_delay_of(struct task_struct *task)
{
	return has_run_delay(task) ? task->sched_info.run_delay : 0;
}

/* The first two arguments; at entry, for the result takes the place of one of them on arm64. */
static __always_inline void read_call_args(struct fbt_slot *slot, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

#ifdef __TARGET_ARCH_x86
	slot->call_args[0] = regs->di;
	slot->call_args[1] = regs->si;
#else
	slot->call_args[0] = regs->user_regs.regs[0];
	slot->call_args[1] = regs->user_regs.regs[1];
#endif
}

static __always_inline void enter_call(struct fbt_slot *slot, struct task_struct *task, __u32 nr)
{
	slot->call_delay_ns = run_delay_of(task);
	slot->call_flags = 0;
	if (call_detail < FBT_DETAIL_ESCALATED || nr >= FBT_NR_COUNT - 1)
		return;
	slot->call_switches = task->nvcsw;
	slot->call_flags = FBT_CALL_ARGS;
	read_call_args(slot, task);
}

/*
 * Of a call that was entered at start: takes what it waited for a CPU out of the step's figure.
 * Returns the FBT_CALL_* flags.
 */
static __always_inline __u32 leave_call(struct fbt_slot *slot, struct task_struct *task,
					__u64 start)
{
	__u32 flags = slot->call_flags;

	if (start < slot->step_start_ns)
		return 0;
	slot->step_delay_ns += run_delay_of(task) - slot->call_delay_ns;
	if (flags && task->nvcsw != slot->call_switches)
		flags |= FBT_CALL_BLOCKED;
	return flags;
}

#endif
