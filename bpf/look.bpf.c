/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Lists the threads of a process with their registers, for a look from outside at a call that is
 * still open: nothing is stopped, and no thread of the process runs a single instruction for it. An
 * object of its own: where the kernel refuses it, tracing works without.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "fbt_shared.h"
#include "registers.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* From 6.1 on the kernel is told too, and passes over no other thread. */
volatile __s32 wanted_tgid = 0;

/* Its number in the PID namespace that it sees itself in: that is what locks have as their owner.
 */
static __always_inline __u32 own_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level, nr = 0;
	__u64 at;

	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	at = bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + at + bpf_core_field_offset(struct upid, nr));
	return nr;
}

static __always_inline __s64 open_call(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

#ifdef __TARGET_ARCH_x86
	return (__s64)regs->orig_ax;
#else
	__s32 nr = -1;

	bpf_probe_read_kernel(&nr, sizeof(nr), &regs->syscallno);
	return nr;
#endif
}

/* An int in Linux 6.18, a byte in 7.2: libbpf refuses a plain access to the other one. */
static __always_inline bool is_on_cpu(struct task_struct *task)
{
	__u32 on_cpu = 0;

	if (!bpf_core_field_exists(task->on_cpu))
		return !task->__state;
	bpf_core_read(&on_cpu, bpf_core_field_size(task->on_cpu), &task->on_cpu);
	return on_cpu;
}

SEC("iter/task")
int list_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct fbt_look_task look = {};

	if (!task || task->tgid != wanted_tgid)
		return 0;
	look.tid = task->pid;
	look.ns_tid = own_tid(task);
	look.state = task->__state;
	look.on_cpu = is_on_cpu(task);
	look.switches = task->nvcsw + task->nivcsw;
	look.nr = open_call(task);
	bpf_probe_read_kernel(look.comm, sizeof(look.comm), task->comm);
	read_registers(look.registers, task);
	bpf_seq_write(ctx->meta->seq, &look, sizeof(look));
	return 0;
}
