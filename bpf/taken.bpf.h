/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Who has the CPU while a step's thread is ready to run, but has to wait for it. A wait begins when
 * the thread is woken, or loses its CPU; it ends when the thread is switched in. Meanwhile each
 * switch on that CPU charges the task that ran.
 *
 * The same for threads that usually compute, or have made a step wait before, while they are in no
 * step: a step may wait for one of them. Each of their waits is a record of its own, as it is not
 * known yet of which step it will be a part.
 *
 * Every switch of the machine comes by here. Where nobody waits, it costs three look-ups.
 *
 * cpu_waits has the slots of those that wait for a CPU. Places are taken and given back by an
 * exchange, because a thread may be woken from another CPU. The record of a slot is written only
 * where its thread is woken or runs, or by the CPU that it waits for.
 */
#ifndef FBT_TAKEN_BPF_H
#define FBT_TAKEN_BPF_H

#include <bpf/bpf_core_read.h>
#include "threads.bpf.h"

/* Threads that wait for one CPU and are looked at: of those in steps, and of others. */
#define WAITERS 4

/* Of FBT_TAKERS, the places of threads of the process: the others are for other processes, … */
#define OWN_TAKERS 2
/* … of these so many for cgroups, if there are more processes than places, … */
#define GROUP_TAKERS 2
/* … and none had so many times the time of another. */
#define ALIKE 8

/* So much waiting makes a record; less is kept for the next one of the same step. */
#define TAKEN_SEND_NS 100000

struct cpu_waits {
	__u32 slot[2 * WAITERS]; /* 0: none; those in steps first */
};

/* The waits of a slot's thread in its step that are in no record yet, or one outside of steps. */
struct taken {
	__u64 of_ns;	  /* when the step began, or the wait */
	__u64 task;	  /* address of the thread; 0: it does not wait */
	__u64 begin_ns;	  /* of the wait */
	__u64 charged_ns; /* up to then it is known who ran */
	__u32 cpu;	  /* on whose list it is */
	__u32 first_cpu;  /* on whose list it was at the begin of the wait */
	struct fbt_taken sum;
};

/* One per CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_waits);
} cpu_waits SEC(".maps");

/* One per slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct taken);
} taken_by SEC(".maps");

/* Since Linux 5.16. */
struct thread_info___new {
	__u32 cpu;
} __attribute__((preserve_access_index));

struct task_struct___new {
	struct thread_info___new thread_info;
} __attribute__((preserve_access_index));

/* Before that, and state before 5.14. */
struct task_struct___old {
	long state;
	unsigned int cpu;
} __attribute__((preserve_access_index));

static __always_inline bool is_runnable(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return !task->__state;
	return !BPF_CORE_READ((struct task_struct___old *)task, state);
}

static __always_inline __u32 cpu_of(__u64 task)
{
	struct task_struct___new *of = (struct task_struct___new *)task;

	if (bpf_core_field_exists(of->thread_info.cpu))
		return BPF_CORE_READ(of, thread_info.cpu);
	return BPF_CORE_READ((struct task_struct___old *)task, cpu);
}

static __always_inline void leave_list(__u32 cpu, __u32 index)
{
	struct cpu_waits *waits = bpf_map_lookup_elem(&cpu_waits, &cpu);

	if (!waits)
		return;
#pragma unroll
	for (int i = 0; i < 2 * WAITERS; i++) {
		if (*(volatile __u32 *)&waits->slot[i] == index)
			__sync_val_compare_and_swap(&waits->slot[i], index, 0);
	}
}

/* false: the list is full. Then it is not known who runs. */
static __always_inline bool join_list(__u32 cpu, __u32 index, bool is_outside)
{
	struct cpu_waits *waits = bpf_map_lookup_elem(&cpu_waits, &cpu);
	__u32 *place;

	if (!waits)
		return false;
	place = is_outside ? &waits->slot[WAITERS] : &waits->slot[0];
#pragma unroll
	for (int i = 0; i < WAITERS; i++) {
		if (!__sync_val_compare_and_swap(&place[i], 0, index))
			return true;
	}
	return false;
}

/* Whether anybody will ask who had the CPU. */
static __always_inline bool is_watched(const struct fbt_slot *slot)
{
	return slot->step_start_ns || slot->computes || slot->is_awaited;
}

/* Called under the lock of the CPU's queue. */
static __always_inline void begin_wait(struct fbt_slot *slot, __u32 index, struct task_struct *task,
				       __u32 cpu, __u64 now)
{
	struct taken *taken = bpf_map_lookup_elem(&taken_by, &index);
	bool is_outside = !slot->step_start_ns;
	__u64 of_ns = is_outside ? now : slot->step_start_ns;

	if (!taken || taken->task == (__u64)task)
		return;
	if (taken->of_ns != of_ns) {
		__builtin_memset(&taken->sum, 0, sizeof(taken->sum));
		taken->of_ns = of_ns;
		taken->sum.header.flags = is_outside ? FBT_TAKEN_OUTSIDE : 0;
	}
	taken->begin_ns = now;
	taken->charged_ns = now;
	taken->cpu = cpu;
	taken->first_cpu = cpu;
	store_barrier();
	taken->task = (__u64)task;
	/* Only on a list it is noticed that a thread which is woken while it still runs does not
	 * wait. */
	if (!join_list(cpu, index, is_outside))
		taken->task = 0;
}

static __always_inline void send_taken(struct taken *taken, const struct fbt_slot *slot)
{
	__u16 flags = taken->sum.header.flags;
	struct fbt_taken *record;

	if (taken->sum.waited_ns < TAKEN_SEND_NS)
		return;
	record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
	/* Then it is kept for the next wait of the step. */
	if (!record)
		return;
	__builtin_memcpy(record, &taken->sum, sizeof(*record));
	record->header.type = FBT_EVENT_TAKEN;
	record->header.size = sizeof(*record);
	record->tgid = slot->tgid;
	record->tid = slot->tid;
	record->start_ns = taken->of_ns;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	__builtin_memset(&taken->sum, 0, sizeof(taken->sum));
	taken->sum.header.flags = flags;
}

/* Of a wait that is long enough for a record of its own, and was for one CPU all the time. */
static __always_inline void note_cpu(struct taken *taken, __u64 waited_ns)
{
	__u32 cpu = bpf_get_smp_processor_id();
	bool is_one = taken->first_cpu == cpu && taken->cpu == cpu;

	taken->sum.cpu = waited_ns >= TAKEN_SEND_NS && is_one ? cpu + 1 : 0;
}

/* The thread gets a CPU. */
static __always_inline void end_wait(const struct fbt_slot *slot, __u32 index,
				     struct task_struct *task, __u64 now)
{
	struct taken *taken = bpf_map_lookup_elem(&taken_by, &index);

	if (!taken || !taken->task)
		return;
	leave_list(taken->cpu, index);
	if (taken->task == (__u64)task && now > taken->begin_ns) {
		taken->sum.waited_ns += now - taken->begin_ns;
		note_cpu(taken, now - taken->begin_ns);
	}
	taken->task = 0;
	send_taken(taken, slot);
}

/* The id of its cgroup (the inode of its folder). 0: it is in the root, which says nothing. */
static __always_inline __u64 cgroup_of(struct task_struct *task)
{
	struct cgroup *cgroup;

	if (!bpf_core_field_exists(task->cgroups))
		return 0;
	cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	return BPF_CORE_READ(cgroup, level) > 0 ? BPF_CORE_READ(cgroup, kn, id) : 0;
}

static __always_inline bool is_group(const struct fbt_taker *taker)
{
	return !taker->tgid && taker->cgroup_id;
}

/* Where a task's time may go. Pointers, as Linux 5.15 forgets what it knows of a number that is
 * kept on the stack. */
struct places {
	struct fbt_taker *same;	 /* it has one */
	struct fbt_taker *free;	 /* else */
	struct fbt_taker *group; /* of its cgroup */
	struct fbt_taker *least; /* of its kind, with the least time */
	__u32 groups;
};

static __always_inline void find_places(struct places *places, struct fbt_taken *sum, __u32 tgid,
					__u32 tid, __u64 cgroup)
{
	__u64 least_ns = ~0ull;
	__u32 own = 0;

#pragma unroll
	for (int i = 0; i < FBT_TAKERS; i++) {
		struct fbt_taker *taker = &sum->takers[i];

		if (!taker->tgid && !taker->cgroup_id) {
			if (tid && own >= OWN_TAKERS)
				return;
			places->free = taker;
			sum->count = i + 1;
			return;
		}
		if (is_group(taker)) {
			places->groups++;
			if (taker->cgroup_id == cgroup)
				places->group = taker;
			continue;
		}
		if (taker->tgid == tgid && taker->tid == tid) {
			places->same = taker;
			return;
		}
		if (!taker->tid == !tid && taker->ns < least_ns) {
			least_ns = taker->ns;
			places->least = taker;
		}
		own += taker->tid != 0;
	}
}

static __always_inline void set_taker(struct fbt_taker *taker, struct task_struct *ran, __u32 tid,
				      __u64 cgroup, __u64 ns)
{
	taker->tgid = ran->tgid;
	taker->tid = tid;
	taker->ns = ns;
	taker->cgroup_id = cgroup;
	if (tid)
		BPF_CORE_READ_INTO(&taker->comm, ran, comm);
	else
		BPF_CORE_READ_INTO(&taker->comm, ran, group_leader, comm);
}

/*
 * There is no place. The one with least gives way to one that has had the CPU for longer: a hog is
 * not always among the first that run. If both are of one cgroup and had about the same, as
 * compilers of a build have, its place becomes that of the cgroup.
 */
static __always_inline void charge_crowd(struct fbt_taken *sum, struct places *places,
					 struct task_struct *ran, __u32 tid, __u64 cgroup, __u64 ns)
{
	struct fbt_taker *least = places->least;
	bool is_one = least && least->cgroup_id == cgroup;
	__u64 lost_ns = ns;

	if (least && is_one && cgroup && !places->group && places->groups < GROUP_TAKERS &&
	    ns < ALIKE * least->ns && least->ns < ALIKE * ns) {
		least->tgid = 0;
		__builtin_memset(least->comm, 0, sizeof(least->comm));
		least->ns += ns;
		return;
	}
	if (least && least->ns < ns) {
		lost_ns = least->ns;
		set_taker(least, ran, tid, cgroup, ns);
	} else {
		is_one = true;
	}
	if (places->group && is_one)
		places->group->ns += lost_ns;
	else if (!tid)
		sum->other_ns += lost_ns;
}

static __always_inline void charge(struct taken *taken, const struct fbt_slot *slot,
				   struct task_struct *ran, __u64 ns)
{
	struct fbt_taken *sum = &taken->sum;
	__u32 tgid = ran->tgid, tid = tgid == slot->tgid ? ran->pid : 0;
	struct places places = {};
	__u64 cgroup = 0;

	if (!ran->pid) {
		sum->idle_ns += ns;
		return;
	}
	if (tid)
		sum->own_ns += ns;
	else
		cgroup = cgroup_of(ran);
	find_places(&places, sum, tgid, tid, cgroup);
	if (places.same)
		places.same->ns += ns;
	else if (places.free)
		set_taker(places.free, ran, tid, cgroup, ns);
	else
		charge_crowd(sum, &places, ran, tid, cgroup, ns);
}

/*
 * The current task has run on this CPU until now, while the thread of that slot was on the CPU's
 * list. Not inlined, so that the verifier checks it once.
 */
__noinline int charge_waiter(__u32 index, __u32 cpu, __u64 now)
{
	struct task_struct *ran = bpf_get_current_task_btf();
	struct taken *taken = bpf_map_lookup_elem(&taken_by, &index);
	struct fbt_slot *slot = bpf_map_lookup_elem(&slots, &index);
	__u32 present;

	if (!taken || !slot || !taken->task || taken->cpu != cpu) {
		leave_list(cpu, index);
		return 0;
	}
	/* It was woken while it still ran: no wait. */
	if (taken->task == bpf_get_current_task()) {
		leave_list(cpu, index);
		taken->task = 0;
		return 0;
	}
	present = cpu_of(taken->task);
	if (present == cpu && now > taken->charged_ns)
		charge(taken, slot, ran, now - taken->charged_ns);
	taken->charged_ns = now;
	if (present == cpu)
		return 0;
	/* It was moved to the queue of another CPU, since when is not known: nobody is charged. */
	leave_list(cpu, index);
	taken->cpu = present;
	store_barrier();
	join_list(present, index, taken->sum.header.flags & FBT_TAKEN_OUTSIDE);
	return 0;
}

/* All that are on the CPU's list. At the switch the task that has run is still the current one. */
static __always_inline void charge_waiters(__u32 cpu, __u64 *now)
{
	struct cpu_waits *waits = bpf_map_lookup_elem(&cpu_waits, &cpu);

	if (!waits)
		return;
#pragma unroll
	for (int i = 0; i < 2 * WAITERS; i++) {
		__u32 index = *(volatile __u32 *)&waits->slot[i];

		if (!index)
			continue;
		if (!*now)
			*now = bpf_ktime_get_ns();
		charge_waiter(index, cpu, *now);
	}
}

#endif
