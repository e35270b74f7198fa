/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the limits of a thread's cgroups did during a step. The counters are those of cpu.stat and
 * memory.events.local, of the thread's own cgroup and of each above it, because any of them may
 * have the limit. They are the same in both versions of cgroups, and wherever these are mounted.
 */
#ifndef FBT_LIMITS_BPF_H
#define FBT_LIMITS_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "fbt_event.h"
#include "fbt_shared.h"

/* The deepest cgroup whose limits are known. A container in a container is at a depth of 10. */
#define CGROUP_LEVELS 16
/* How old the memory counter may be when a step begins: reading it adds 0.1 us to a step. */
#define MEMORY_SEEN_NS 10000000
/*
 * At the end of a step that took this long it is read even if the step had no page fault: a thread
 * that it waited for may have wanted memory. 0.1 us is 0.01 % of such a step.
 */
#define MEMORY_STEP_NS 1000000
/* cfs_bandwidth.quota of a cgroup without a limit, RUNTIME_INF. */
#define NO_QUOTA (~0ull)

/* Its value differs between kernels, which is why it is not in vmlinux.h. CO-RE finds it. */
enum cgroup_subsys_id {
	memory_cgrp_id = 1,
};

#define has_cgroups(task) bpf_core_field_exists((task)->cgroups)
#define has_throttling(task)                                                                       \
	(bpf_core_field_exists((task)->sched_task_group) &&                                        \
	 bpf_core_field_exists((task)->sched_task_group->cfs_bandwidth.throttled_time))
#define has_memory_events(memory)                                                                  \
	(bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id) &&                      \
	 bpf_core_field_exists((memory)->memory_events_local))

struct throttling {
	__u64 ns;
	__u32 periods;
};

static __always_inline struct throttling throttling_of(struct task_struct *task)
{
	struct throttling sum = {.ns = 0};
	struct task_group *group;

	if (!has_throttling(task))
		return sum;
	group = task->sched_task_group;
	for (int i = 0; i < CGROUP_LEVELS && group; i++) {
		sum.ns += group->cfs_bandwidth.throttled_time;
		sum.periods += (__u32)group->cfs_bandwidth.nr_throttled;
		group = group->parent;
	}
	return sum;
}

/*
 * 1 unless x is 0. Not by a branch: the verifier would go through a loop in each combination of
 * its levels.
 */
static __always_inline __u64 is_set(__u64 x)
{
	__u64 minus = -x;

	asm volatile("" : "+r"(minus));
	return (x | minus) >> 63;
}

/* Which of several limits was reached is not known, so then none is named. */
static __always_inline void name_cpu_limit(struct fbt_step_limits *limits, struct task_struct *task)
{
	__u64 quota_ns = 0, period_ns = 0, count = 0;
	struct task_group *group;

	if (!has_throttling(task))
		return;
	group = task->sched_task_group;
	for (int i = 0; i < CGROUP_LEVELS && group; i++) {
		__u64 quota = group->cfs_bandwidth.quota, has = is_set(quota - NO_QUOTA);

		quota_ns += quota & -has;
		period_ns += (__u64)group->cfs_bandwidth.period & -has;
		count += has;
		group = group->parent;
	}
	limits->quota_ns = count == 1 ? quota_ns : 0;
	limits->period_ns = count == 1 ? period_ns : 0;
}

/* How often its cgroups were at their limit of memory (max and high) when they wanted more. */
static __always_inline __u64 memory_hits_of(struct task_struct *task)
{
	struct mem_cgroup *memory = NULL;
	struct css_set *cgroups;
	__u64 hits = 0;

	if (!has_memory_events(memory))
		return 0;
	cgroups = BPF_CORE_READ(task, cgroups);
	bpf_core_read(&memory, sizeof(memory),
		      &cgroups->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
	for (int i = 0; i < CGROUP_LEVELS && memory; i++) {
		s64 events[MEMCG_MAX + 1] = {};

		bpf_core_read(&events, sizeof(events), &memory->memory_events_local);
		hits += events[MEMCG_HIGH] + events[MEMCG_MAX];
		memory = (struct mem_cgroup *)BPF_CORE_READ(memory, css.parent);
	}
	return hits;
}

static __always_inline __u64 cgroups_of(struct task_struct *task)
{
	return has_cgroups(task) ? (__u64)task->cgroups : 0;
}

static __always_inline void begin_limits(struct fbt_slot *slot, struct task_struct *task, __u64 now)
{
	struct throttling sum = throttling_of(task);
	__u64 cgroups = cgroups_of(task);

	if (!slot->memory_seen_ns || now - slot->memory_seen_ns > MEMORY_SEEN_NS ||
	    cgroups != slot->step_cgroups) {
		slot->memory_hits = memory_hits_of(task);
		slot->memory_seen_ns = now;
	}
	slot->step_cgroups = cgroups;
	slot->step_throttled_ns = sum.ns;
	slot->step_throttled = sum.periods;
}

/*
 * Of a step that began at start and ends at now. faulted: it had page faults; else no memory was
 * wanted in a short step, and memory_hits are 0.
 */
static __always_inline void end_limits(struct fbt_step_limits *limits, struct fbt_slot *slot,
				       struct task_struct *task, __u64 start, __u64 now,
				       bool faulted)
{
	struct throttling sum = throttling_of(task);
	__u64 hits;

	__builtin_memset(limits, 0, sizeof(*limits));
	/* It was moved to other cgroups, which have counters of their own. */
	if (cgroups_of(task) != slot->step_cgroups)
		return;
	limits->throttled_ns = sum.ns - slot->step_throttled_ns;
	limits->throttled_periods = sum.periods - slot->step_throttled;
	if (limits->throttled_ns)
		name_cpu_limit(limits, task);
	if (!faulted && now - start < MEMORY_STEP_NS)
		return;
	hits = memory_hits_of(task);
	limits->memory_hits = hits - slot->memory_hits;
	slot->memory_hits = hits;
	slot->memory_seen_ns = now;
}

#endif
