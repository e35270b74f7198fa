/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Programs that are attached only while a step was slow lately for a reason that they explain
 * (user/trace/explain.h). An object of its own: where a kernel refuses it, all else works. Its maps
 * are those of bpf/trace.bpf.c, but for a few of its own.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "fault_sites.bpf.h"
#include "samples.bpf.h"
#include "taken.bpf.h"
#include "woken.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Every switch of the machine. */
SEC("tp_btf/sched_switch")
int BPF_PROG(explain_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id(), index;
	struct fbt_slot *slot;
	__u64 now = 0;

	charge_waiters(cpu, &now);
	slot = find_thread(next->pid, &index);
	if (slot) {
		now = now ? now : bpf_ktime_get_ns();
		end_wait(slot, index, next, now);
	}
	if (!preempt && !is_runnable(prev))
		return 0;
	slot = find_thread(prev->pid, &index);
	if (slot && is_watched(slot))
		begin_wait(slot, index, prev, cpu, now ? now : bpf_ktime_get_ns());
	return 0;
}

/* Every task that is put on a queue. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(explain_wakeup, struct task_struct *task)
{
	__u32 index;
	struct fbt_slot *slot = find_thread(task->pid, &index);

	if (slot && is_watched(slot))
		begin_wait(slot, index, task, cpu_of((__u64)task), bpf_ktime_get_ns());
	return 0;
}

/* Every wake-up of the machine, by whoever does it. */
SEC("tp_btf/sched_waking")
int BPF_PROG(explain_waking, struct task_struct *task)
{
	wake_thread(task, ctx);
	return 0;
}

/* The CPU clock of a thread that computes in its steps. */
SEC("perf_event")
int explain_sample(struct bpf_perf_event_data *ctx)
{
	take_sample(FBT_PLACE_SAMPLE);
	return 0;
}

/* The page faults of a thread whose steps have too many, when they have been handled. */
SEC("perf_event")
int explain_minor_fault(struct bpf_perf_event_data *ctx)
{
	count_fault(ctx, false);
	return 0;
}

SEC("perf_event")
int explain_major_fault(struct bpf_perf_event_data *ctx)
{
	count_fault(ctx, true);
	return 0;
}
