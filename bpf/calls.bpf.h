/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Details of a call inside a step: its arguments, its file, and whether it blocked. Arguments and
 * file are read at entry, because later the registers may have changed and the descriptor may name
 * another file.
 */
#ifndef FBT_CALLS_BPF_H
#define FBT_CALLS_BPF_H

#include "files.bpf.h"
#include "times.bpf.h"

/* Valid only at entry: on arm64 the return value overwrites the first argument. */
#ifdef __TARGET_ARCH_x86
#define FIRST_OF(regs)	((regs)->di)
#define SECOND_OF(regs) ((regs)->si)
#define FOURTH_OF(regs) ((regs)->r10)
#else
#define FIRST_OF(regs)	((regs)->user_regs.regs[0])
#define SECOND_OF(regs) ((regs)->user_regs.regs[1])
#define FOURTH_OF(regs) ((regs)->user_regs.regs[3])
#endif

/* The id of the file that a call is about to use. */
static __always_inline __u32 file_of_call(struct fbt_slot *slot, struct task_struct *task, __u8 how,
					  struct pt_regs *regs)
{
	__u32 fd = FIRST_OF(regs);
	__u32 id;

	if ((how & FBT_FD_RING) && (FOURTH_OF(regs) & FBT_RING_INDEX))
		return 0;
	id = file_of(slot, task, fd);
	if (how & FBT_FD_CLOSED)
		forget_file(slot, fd);
	return id;
}

static __always_inline void enter_call(struct fbt_slot *slot, struct task_struct *task, __u32 nr)
{
	if (task->nvcsw != slot->awake_switches)
		note_sleep(slot, SLEPT_OUTSIDE);
	slot->call_delay_ns = run_delay_of(task);
	slot->call_minor_faults = task->min_flt;
	slot->call_major_faults = task->maj_flt;
	slot->call_flags = 0;
	if (call_detail < FBT_DETAIL_ESCALATED || nr >= FBT_NR_COUNT - 1)
		return;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u8 how = descriptors[nr];

	slot->call_switches = task->nvcsw;
	slot->call_flags = FBT_CALL_ARGS;
	slot->call_args[0] = FIRST_OF(regs);
	slot->call_args[1] = SECOND_OF(regs);
	slot->call_file = how & FBT_FD_FIRST ? file_of_call(slot, task, how, regs) : 0;
}

/*
 * CPU waits and page faults inside a call belong to the call, not to the step's own time. Returns
 * the time that the call, of that duration, has waited for a CPU.
 */
static __always_inline __u64 leave_call(struct fbt_slot *slot, struct task_struct *task,
					__u64 duration)
{
	__u64 delay = run_delay_of(task) - slot->call_delay_ns;

	slot->step_delay_ns += delay;
	slot->step_minor_faults += task->min_flt - slot->call_minor_faults;
	slot->step_major_faults += task->maj_flt - slot->call_major_faults;
	if (task->nvcsw != slot->awake_switches)
		note_sleep(slot, duration > delay ? duration - delay : 0);
	return delay;
}

/*
 * Called when a call returns. Returns its FBT_CALL_* flags, and sets call_file if the call returned
 * a descriptor.
 */
static __always_inline __u32 know_call(struct fbt_slot *slot, struct task_struct *task, __u32 nr,
				       long ret)
{
	__u32 flags = slot->call_flags;

	if (!flags)
		return 0;
	if (task->nvcsw != slot->call_switches)
		flags |= FBT_CALL_BLOCKED;
	if (nr < FBT_NR_COUNT && (descriptors[nr] & FBT_FD_MADE) && ret >= 0) {
		forget_file(slot, ret);
		slot->call_file = file_of(slot, task, ret);
	}
	return flags;
}

#endif
