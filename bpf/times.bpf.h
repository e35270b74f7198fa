/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where the time of the current thread goes: on a CPU, waiting for one, or asleep. All of it is in
 * figures that the kernel keeps of each thread anyway, so nothing is attached to the scheduler.
 */
#ifndef FBT_TIMES_BPF_H
#define FBT_TIMES_BPF_H

#include <bpf/bpf_core_read.h>
#include "maps.bpf.h"

/* Kernels without CONFIG_SCHED_INFO do not have the field. */
#define has_run_delay(task) bpf_core_field_exists((task)->sched_info.run_delay)

/* Kernels without CONFIG_FAIR_GROUP_SCHED do not have the pointer. */
#define has_cpu_clock(task) (has_run_delay(task) && bpf_core_field_exists(((struct cfs_rq *)0)->rq))

/*
 * Total time that the thread has waited for a CPU. Exact if task is the current thread, because a
 * thread that runs is not waiting.
 */
static __always_inline __u64 run_delay_of(struct task_struct *task)
{
	return has_run_delay(task) ? task->sched_info.run_delay : 0;
}

/* Total time of a thread on a CPU, as of the last tick or switch; FBT_USE_UNKNOWN. */
static __always_inline __u64 cpu_use_of(struct task_struct *task)
{
	return has_run_delay(task) ? task->se.sum_exec_runtime : FBT_USE_UNKNOWN;
}

/*
 * Whether another CPU may be changing what current_cpu_clock() reads, as to wake a thread on this
 * one. The only CPU of a kernel without SMP has no such lock.
 */
static __always_inline bool is_changing(struct rq *rq)
{
	return bpf_core_field_exists(rq->__lock.raw_lock.val) && rq->__lock.raw_lock.val.counter;
}

/* Fields of kernels with CONFIG_IRQ_TIME_ACCOUNTING and CONFIG_PARAVIRT_TIME_ACCOUNTING. */
struct rq___taken {
	u64 prev_irq_time;
	u64 prev_steal_time_rq;
} __attribute__((preserve_access_index));

/*
 * What the CPU of a guest gave to its host, as far as the kernel has seen it. Before Linux 6.14 it
 * is what clock_task leaves out, after that it may be more.
 */
static __always_inline __u64 steal_of(struct rq *rq)
{
	struct rq___taken *of = (struct rq___taken *)rq;

	return bpf_core_field_exists(of->prev_steal_time_rq) ? of->prev_steal_time_rq : 0;
}

/* The same and what it gave to interrupts. */
static __always_inline __u64 taken_of(struct rq *rq)
{
	struct rq___taken *of = (struct rq___taken *)rq;

	return steal_of(rq) + (bpf_core_field_exists(of->prev_irq_time) ? of->prev_irq_time : 0);
}

/* Of a CPU: the constants of its last reading that no other CPU disturbed. */
struct kept_clock {
	__u64 origin; /* of the clock of the run queue, in the time that clock_task has */
	__u64 base;   /* of the thread that ran, while it ran */
	__u64 spell;  /* see spell_of() */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept_clock);
} kept_clocks SEC(".maps");

/* Another number for each thread, and for each time that it is given the CPU. Never 0. */
static __always_inline __u64 spell_of(struct task_struct *task)
{
	return (__u64)task->pid << 32 | (__u32)(task->nvcsw + task->nivcsw);
}

/* Each takes some nanoseconds. */
#define CLOCK_TRIES 3

/*
 * The CPU clock of the current thread: the difference of two readings is its time on a CPU between
 * them, exact although the kernel updates sum_exec_runtime only at ticks and switches. What has
 * passed since is the present time minus exec_start, up to a constant: the clock of the run queue
 * has another origin than now. Without the time that the CPU gave to interrupts and, as a guest, to
 * its host, which clock_task leaves out.
 *
 * A change between the loads would give a sum that does not belong to exec_start: then again.
 * Another CPU may be held up in the middle of a change, as by the host of a virtual machine, for
 * longer than a thread should wait here. But base does not change while the thread keeps its CPU,
 * and origin only where the kernel drops time that the host took, as it was more than the clock
 * went on: those of the last reading hold.
 *
 * Not inlined, so that the verifier checks it once.
 */
__noinline __u64 current_cpu_clock(__u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 start, clock, origin = 0, base = 0, taken = 0, spell = 0;
	struct kept_clock *kept;
	bool changing = true;
	__u32 zero = 0;
	struct rq *rq;

	kept = bpf_map_lookup_elem(&kept_clocks, &zero);
	if (!has_cpu_clock(task) || !kept)
		return 0;
	/* Not in the loop: to follow a pointer takes the verifier long. */
	rq = task->se.cfs_rq->rq;
	for (int i = 0; i < CLOCK_TRIES && changing; i++) {
		spell = spell_of(task);
		start = task->se.exec_start;
		clock = rq->clock;
		asm volatile("" ::: "memory");
		changing = is_changing(rq);
		asm volatile("" ::: "memory");
		taken = taken_of(rq);
		origin = clock - rq->clock_task - taken;
		base = task->se.sum_exec_runtime - start;
		asm volatile("" ::: "memory");
		changing |= is_changing(rq) || rq->clock != clock || task->se.exec_start != start ||
			    spell_of(task) != spell;
	}
	if (!changing) {
		kept->origin = origin;
		kept->base = base;
		kept->spell = spell;
	} else if (kept->spell) {
		origin = kept->origin;
		if (kept->spell == spell && spell == spell_of(task))
			base = kept->base;
	}
	return base + now - origin - taken;
}

/* Not in vmlinux.h. */
struct sched_entity___moves {
	u64 nr_migrations;
} __attribute__((preserve_access_index));

static __always_inline __u64 moves_of(struct task_struct *task)
{
	struct sched_entity___moves *of = (struct sched_entity___moves *)&task->se;

	return bpf_core_field_exists(of->nr_migrations) ? of->nr_migrations : 0;
}

/* What the host took is known from begin_steal() to end_steal() if the thread keeps its CPU. */
static __always_inline void begin_steal(struct fbt_slot *slot, struct task_struct *task)
{
	slot->step_moves = moves_of(task);
	slot->step_steal_ns = has_cpu_clock(task) ? steal_of(task->se.cfs_rq->rq) : 0;
}

/* In microseconds, as fbt_step.steal_us. */
static __always_inline __u32 end_steal(const struct fbt_slot *slot, struct task_struct *task)
{
	if (!has_cpu_clock(task) || moves_of(task) != slot->step_moves)
		return 0;
	return (__u32)((steal_of(task->se.cfs_rq->rq) - slot->step_steal_ns) / 1000);
}

static __always_inline __u64 cpu_clock(struct task_struct *task, __u64 now)
{
	return has_cpu_clock(task) ? current_cpu_clock(now) : 0;
}

/* The thread runs, so it is awake: what its clocks say later than now is since then. */
static __always_inline void wake_up(struct fbt_slot *slot, struct task_struct *task, __u64 now)
{
	slot->awake_ns = now;
	slot->awake_cpu_ns = cpu_clock(task, now);
	slot->awake_delay_ns = run_delay_of(task);
	slot->awake_switches = task->nvcsw;
	slot->awake_major_faults = task->maj_flt;
}

/*
 * The current thread has given up its CPU since awake_ns, within a step. Returns the time that it
 * slept, and begins anew.
 */
static __always_inline __u64 sleep_of(struct fbt_slot *slot, struct task_struct *task)
{
	__u64 asleep = slot->awake_cpu_ns + slot->awake_delay_ns - slot->awake_ns;

	wake_up(slot, task, bpf_ktime_get_ns());
	asleep += slot->awake_ns - slot->awake_cpu_ns - slot->awake_delay_ns;
	return (__s64)asleep < 0 ? 0 : asleep;
}

#define SLEPT_OUTSIDE (~0ull)

/*
 * The current thread has given up its CPU since awake_ns, within a step: adds the time that it
 * slept. This happened in the call that is about to return, at most limit ns of it; or outside of
 * its calls, where it does so for a page that is read from disk, for a lock of its address space,
 * or because it was stopped.
 */
__noinline int note_sleep(struct fbt_slot *slot, __u64 limit)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 asleep, major;

	if (!slot)
		return 0;
	major = slot->awake_major_faults;
	asleep = sleep_of(slot, task);
	if (limit != SLEPT_OUTSIDE)
		slot->step_asleep_ns += asleep < limit ? asleep : limit;
	else if (slot->awake_major_faults != major)
		slot->step_fault_wait_ns += asleep;
	return 0;
}

#endif
