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
#define THIRD_OF(regs)	((regs)->dx)
#define FOURTH_OF(regs) ((regs)->r10)
#else
#define FIRST_OF(regs)	((regs)->user_regs.regs[0])
#define SECOND_OF(regs) ((regs)->user_regs.regs[1])
#define THIRD_OF(regs)	((regs)->user_regs.regs[2])
#define FOURTH_OF(regs) ((regs)->user_regs.regs[3])
#endif

/* The id of the file that a call is about to use. */
static __always_inline __u32 file_of_call(struct fbt_slot *slot, struct task_struct *task,
					  __u32 how, struct pt_regs *regs)
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

/*
 * Commands of NVIDIA's driver are _IOWR('F', number, size); see model/driver_calls.h. All controls
 * are one command and all allocations another one. Which it is stands in the first 16 bytes of the
 * argument: struct NVOS54_PARAMETERS, struct NVOS21_PARAMETERS.
 */
#define RM_MASK	      0xc000ff00u
#define RM_COMMAND    0xc0004600u
#define RM_CONTROL    0x2a
#define RM_ALLOC      0x2b
#define RM_TRANSFER   211
#define CONTROL_INDEX 2 /* cmd, after hClient and hObject */
#define ALLOC_INDEX   3 /* hClass, after hRoot, hObjectParent and hObjectNew */

/* No process has memory below, and a read that faults takes 0.7 us. */
#define LOWEST_ADDRESS 4096

static __always_inline bool read_words(__u32 words[4], __u64 address)
{
	return address >= LOWEST_ADDRESS &&
	       !bpf_probe_read_user(words, 4 * sizeof(*words), (void *)address);
}

static __always_inline bool is_driver_command(__u64 second)
{
	return ((__u32)second & RM_MASK) == RM_COMMAND;
}

/* fbt_call.args[1] of such an ioctl with that second and third argument. */
static __noinline __u64 driver_command(__u64 second, __u64 third)
{
	__u32 command = second;
	__u32 words[4] = {};

	if ((command & 0xff) == RM_TRANSFER) {
		/* struct nv_ioctl_xfer: the command's number, its size, and its argument. */
		if (!read_words(words, third))
			return command;
		command = RM_COMMAND | (words[0] & 0xff);
		third = (__u64)words[3] << 32 | words[2];
	}
	if ((command & 0xff) != RM_CONTROL && (command & 0xff) != RM_ALLOC)
		return command;
	if (!read_words(words, third))
		return command;
	return (__u64)words[(command & 0xff) == RM_CONTROL ? CONTROL_INDEX : ALLOC_INDEX] << 32 |
	       command;
}

static __always_inline void enter_call(struct fbt_slot *slot, struct task_struct *task, __u32 nr,
				       __u32 how)
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

	slot->call_flags = FBT_CALL_ARGS;
	slot->call_args[0] = FIRST_OF(regs);
	slot->call_args[1] = SECOND_OF(regs);
	/* The kernel takes the lower half of a command only. */
	if (how & FBT_FD_DRIVER)
		slot->call_args[1] = is_driver_command(SECOND_OF(regs))
					     ? driver_command(SECOND_OF(regs), THIRD_OF(regs))
					     : (__u32)SECOND_OF(regs);
	slot->call_file = how & FBT_FD_FIRST ? file_of_call(slot, task, how, regs) : 0;
}

/*
 * CPU waits and page faults inside a call belong to the call, not to the step's own time. Returns
 * the time that the call, of that duration, has waited for a CPU. Most calls do not block, wait or
 * fault, and what they do not change is not written.
 */
static __always_inline __u64 leave_call(struct fbt_slot *slot, struct task_struct *task,
					__u64 duration)
{
	__u64 delay = run_delay_of(task) - slot->call_delay_ns;
	__u64 minor = task->min_flt - slot->call_minor_faults;
	__u64 major = task->maj_flt - slot->call_major_faults;

	if (delay | minor | major) {
		slot->step_delay_ns += delay;
		slot->step_minor_faults += minor;
		slot->step_major_faults += major;
	}
	if (task->nvcsw != slot->awake_switches) {
		slot->call_flags |= slot->call_flags ? FBT_CALL_BLOCKED : 0;
		note_sleep(slot, duration > delay ? duration - delay : 0);
	}
	return delay;
}

/*
 * A call of a step has returned a descriptor: sets call_file. Not inlined: the look-up would make
 * the program long, and few calls do.
 */
__noinline int leave_made(struct fbt_slot *slot, __u32 fd)
{
	if (!slot)
		return 0;
	forget_file(slot, fd);
	slot->call_file = file_of(slot, bpf_get_current_task_btf(), fd);
	return 0;
}

#endif
