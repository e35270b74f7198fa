/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How often a step has faulted at which place: all of its page faults outside of calls, counted by
 * instruction, stack pointer and mapping. The same instruction with the same stack pointer is the
 * same call path, as a rule; the stack is copied once for each such pair (bpf/samples.bpf.h). The
 * sums of the latest steps stay in the map fault_sums until the loader has read them.
 */
#ifndef FBT_FAULT_SITES_BPF_H
#define FBT_FAULT_SITES_BPF_H

#include "faults.bpf.h"
#include "samples.bpf.h"

/* A place whose stack was copied. */
struct fault_path {
	__u64 ip;
	__u64 sp;
	__u64 tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct fault_path);
	__type(value, __u32);
} fault_paths SEC(".maps");

#ifdef __TARGET_ARCH_x86
static __always_inline void read_place(const struct bpf_perf_event_data *ctx, __u64 *ip, __u64 *sp)
{
	*ip = ctx->regs.ip;
	*sp = ctx->regs.sp;
}
#else
static __always_inline void read_place(const struct bpf_perf_event_data *ctx, __u64 *ip, __u64 *sp)
{
	*ip = ctx->regs.pc;
	*sp = ctx->regs.sp;
}
#endif

/* The sum of the step that began at step_ns. Only the thread itself writes it. */
static __always_inline struct fbt_fault_sum *sum_of(struct fbt_fault_thread *thread, __u64 step_ns)
{
	struct fbt_fault_sum *sum = &thread->sums[thread->latest % FBT_FAULT_STEPS];

	if (sum->step_ns == step_ns)
		return sum;
	thread->latest++;
	sum = &thread->sums[thread->latest % FBT_FAULT_STEPS];
	__builtin_memset(sum, 0, sizeof(*sum));
	sum->step_ns = step_ns;
	return sum;
}

/* No mapping is changed while the thread is in the fault, so the address is looked up once. */
static __always_inline __u32 mapping_at(struct fbt_slot *slot, __u64 address, __u64 sp)
{
	if (!is_in_area(slot, address))
		find_area(slot, address);
	if (slot->area_mapping != FBT_MAPPING_ANON)
		return slot->area_mapping & (FBT_MAPPING_COUNT - 1);
	if (is_in_area(slot, sp) && address + STACK_BELOW >= sp && address < sp + STACK_ABOVE)
		return FBT_MAPPING_STACK;
	return FBT_MAPPING_ANON;
}

/* Returns whether it was copied, now or before. */
__noinline int copy_path(__u64 ip, __u64 sp, __u32 tid)
{
	struct fault_path path = {ip, sp, tid};
	__u32 one = 1;

	if (bpf_map_lookup_elem(&fault_paths, &path))
		return 1;
	if (!take_sample(FBT_PLACE_FAULT))
		return 0;
	bpf_map_update_elem(&fault_paths, &path, &one, BPF_ANY);
	return 1;
}

static __always_inline void count_fault(const struct bpf_perf_event_data *ctx, bool is_major)
{
	__u32 index, tid = (__u32)bpf_get_current_pid_tgid(), mapping, file;
	struct fbt_slot *slot = current_slot(&index);
	struct fbt_fault_thread *thread;
	struct fbt_fault_sum *sum;
	__u64 step_ns, ip, sp;

	step_ns = slot ? slot->step_start_ns : 0;
	thread = step_ns ? bpf_map_lookup_elem(&fault_sums, &tid) : NULL;
	if (!thread)
		return;
	sum = sum_of(thread, step_ns);
	if (slot->start_ns) {
		sum->in_calls++;
		return;
	}
	sum->faults++;
	read_place(ctx, &ip, &sp);
	mapping = mapping_at(slot, ctx->addr, sp);
	file = mapping == FBT_MAPPING_FILE ? slot->area_file : 0;
#pragma unroll
	for (int i = 0; i < FBT_FAULT_PLACES; i++) {
		struct fbt_fault_place *place = &sum->places[i];

		if (!place->faults) {
			place->ip = ip;
			place->sp = sp;
			place->mapping = mapping;
			place->file = file;
		} else if (place->ip != ip || place->sp != sp || place->mapping != mapping ||
			   place->file != file) {
			continue;
		}
		place->faults++;
		place->majors += is_major;
		if (!place->named)
			place->named = copy_path(ip, sp, tid);
		return;
	}
}

#endif
