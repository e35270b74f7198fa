/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The time of page faults within a step, outside of its calls. The kernel counts each fault twice,
 * as software events: when it begins, and when it has been handled, as a minor or a major one. On
 * threads whose page faults matter (user/kernel/faults.h) a program runs at either.
 *
 * An end belongs to the latest begin if the address is the same. Where a signal ends the wait in a
 * fault, or the address is not mapped, there is no end.
 */
#ifndef FBT_FAULTS_BPF_H
#define FBT_FAULTS_BPF_H

#include "files.bpf.h"
#include "handlers.bpf.h"

/* No file descriptor: files of mappings have an id of their own. */
#define FD_NONE (~0u)
/* Below the stack pointer, and above it in the same mapping, memory is the stack. */
#define STACK_BELOW 4096
#define STACK_ABOVE (8u << 20)
/* From this many faults on, the sum over the latest ones is halved. */
#define LATELY_MAX 65536
#define LATELY_MIN 32

/* Linux 5.17. CO-RE finds whether the kernel has it. */
enum bpf_func_id {
	BPF_FUNC_find_vma = 180,
};

struct area {
	__u64 start;
	__u64 end;
	__u64 file; /* address of the kernel's struct file */
};

static long keep_area(struct task_struct *task, struct vm_area_struct *vma, void *to)
{
	struct area *area = to;

	area->start = vma->vm_start;
	area->end = vma->vm_end;
	/* Read as a number: the verifier takes a pointer for one that is never NULL. */
	area->file = (__u64)BPF_CORE_READ(vma, vm_file);
	return 0;
}

#define NOT_FOUND (-2) /* -ENOENT */

/*
 * The mapping that the fault is in. It is looked up again for each other one, and after a call of
 * the thread that may have changed it; what other threads change is not noticed.
 */
__noinline int find_area(struct fbt_slot *slot, __u64 address)
{
	struct area area = {.start = 0};
	long err;

	if (!slot)
		return 0;
	slot->area_start = 0;
	slot->area_end = 0;
	slot->area_file = 0;
	slot->area_mapping = FBT_MAPPING_UNKNOWN;
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
		return 0;
	err = bpf_find_vma(bpf_get_current_task_btf(), address, keep_area, &area, 0);
	/* A fault below a mapping succeeds only if this is a stack, which then grows. */
	if (err == NOT_FOUND)
		slot->area_mapping = FBT_MAPPING_STACK;
	if (err)
		return 0;
	slot->area_start = area.start;
	slot->area_end = area.end;
	slot->area_mapping = area.file ? FBT_MAPPING_FILE : FBT_MAPPING_ANON;
	if (area.file)
		slot->area_file = find_file(slot, area.file, FD_NONE);
	return 0;
}

static __always_inline bool is_in_area(const struct fbt_slot *slot, __u64 address)
{
	return address >= slot->area_start && address < slot->area_end;
}

static __always_inline __u32 mapping_of(const struct fbt_slot *slot, struct task_struct *task)
{
	__u64 sp;

	if (slot->area_mapping != FBT_MAPPING_ANON)
		return slot->area_mapping & (FBT_MAPPING_COUNT - 1);
	sp = stack_of(task);
	if (is_in_area(slot, sp) && slot->fault_address + STACK_BELOW >= sp &&
	    slot->fault_address < sp + STACK_ABOVE)
		return FBT_MAPPING_STACK;
	return FBT_MAPPING_ANON;
}

/* A step begins. */
static __always_inline void forget_faults(struct fbt_slot *slot)
{
	slot->fault_cpu_ns = 0;
	slot->area_end = 0;
	__builtin_memset(&slot->faults, 0, sizeof(slot->faults));
}

__noinline int begin_fault(struct fbt_slot *slot, __u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!slot)
		return 0;
	if (task->nvcsw != slot->awake_switches)
		note_sleep(slot, SLEPT_OUTSIDE);
	if (!is_in_area(slot, address))
		find_area(slot, address);
	slot->fault_address = address;
	slot->fault_majors = task->maj_flt;
	slot->fault_cpu_ns = cpu_clock(task, bpf_ktime_get_ns());
	return 0;
}

static __always_inline __u64 not_negative(__u64 ns)
{
	return (__s64)ns < 0 ? 0 : ns;
}

/* The file that has most of the time: one that has more than half of it is found for sure. */
static __always_inline void vote_for_file(struct fbt_slot *slot, __u64 ns)
{
	struct fbt_step_faults *faults = &slot->faults;

	if (slot->area_file == faults->file) {
		faults->file_ns += ns;
	} else if (faults->file_ns >= ns) {
		faults->file_ns -= ns;
	} else {
		faults->file = slot->area_file;
		faults->file_ns = ns - faults->file_ns;
	}
}

/* Of a minor fault: the thread has slept for a page of a file that is being read. */
static __always_inline bool awaits_disk(const struct fbt_slot *slot, struct task_struct *task,
					__u32 mapping)
{
	if (mapping == FBT_MAPPING_UNKNOWN)
		return task->maj_flt != slot->step_major_faults;
	return mapping == FBT_MAPPING_FILE;
}

/* Returns the time that counts as sleep for something else. */
static __always_inline __u64 add_asleep(struct fbt_slot *slot, struct task_struct *task,
					__u32 mapping, bool is_major, __u64 asleep)
{
	if (!is_major && !awaits_disk(slot, task, mapping)) {
		slot->faults.asleep_ns += asleep;
		return asleep;
	}
	slot->step_fault_wait_ns += asleep;
	return 0;
}

static __always_inline void add_lately(struct fbt_slot *slot, __u64 ns)
{
	slot->lately_ns = not_negative(slot->lately_ns + ns);
	if (++slot->lately_count >= LATELY_MAX) {
		slot->lately_ns /= 2;
		slot->lately_count /= 2;
	}
}

__noinline int end_fault(struct fbt_slot *slot, __u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 cpu = cpu_clock(task, bpf_ktime_get_ns()), asleep = 0;
	bool is_major;
	__u32 mapping;

	if (!slot || !slot->fault_cpu_ns || slot->fault_address != address)
		return 0;
	/*
	 * Time that the host took of the CPU counts until the next tick, and is then taken back: a
	 * fault around the tick may have less than none. So sums are signed.
	 */
	cpu -= slot->fault_cpu_ns;
	slot->fault_cpu_ns = 0;
	if (task->nvcsw != slot->awake_switches)
		asleep = sleep_of(slot, task);
	mapping = mapping_of(slot, task);
	is_major = task->maj_flt != slot->fault_majors;
	slot->faults.cpu_ns += cpu;
	slot->faults.ns[mapping] += cpu + asleep;
	slot->faults.count[mapping]++;
	if (slot->area_file)
		vote_for_file(slot, not_negative(cpu + asleep));
	if (is_major) {
		slot->faults.major_ns += cpu + asleep;
		slot->faults.major_count++;
	}
	asleep = add_asleep(slot, task, mapping, is_major, asleep);
	if (!is_major)
		add_lately(slot, cpu + asleep);
	slot->faults_timed++;
	return 0;
}

/* Adds to each what only the whole of a fault has. */
static __always_inline void fill_faults(struct fbt_step *step, struct fbt_slot *slot)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);
	struct fbt_step_faults *faults = &step->faults;
	__u64 faulted = (__u64)step->minor_faults + step->major_faults;
	__u64 timed = 0, entry = c ? c->fault_entry_ns : 0;

	*faults = slot->faults;
	for (int i = 0; i < FBT_MAPPING_COUNT; i++) {
		faults->ns[i] = not_negative(faults->ns[i]) + entry * faults->count[i];
		timed += faults->count[i];
	}
	faults->major_ns = not_negative(faults->major_ns) + entry * faults->major_count;
	faults->cpu_ns = not_negative(faults->cpu_ns) + entry * timed;
	if (slot->lately_count >= LATELY_MIN)
		faults->mean_ps = slot->lately_ns * 1000 / slot->lately_count;
	if (slot->step_flags & FBT_STEP_CPU_KNOWN && timed * 16 >= faulted * 15)
		slot->step_flags |= FBT_STEP_FAULTS_TIMED;
}

#endif
