/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The BPF programs of a window. A tracepoint has only one program, because with two the kernel
 * calls them in a loop of indirect calls. Each program first tests whether the thread is traced,
 * because every process on the machine pays for the instructions before that test.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "answers.bpf.h"
#include "own_stack.bpf.h"
#include "stalls.bpf.h"
#include "steps.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#ifdef __TARGET_ARCH_x86
/* sys_uretprobe and sys_uprobe: called by the kernel's own trampolines, never by the engine. */
#define is_probe_call(nr) ((__u32)(nr)-335 <= 1)
#else
#define is_probe_call(nr) 0
#endif

/* A 32-bit syscall on a 64-bit kernel has other numbers, so it is counted in the last row. */
static __always_inline bool is_32_bit(struct task_struct *task)
{
#ifdef __TARGET_ARCH_x86
	return task->thread_info.status & 2; /* TS_COMPAT */
#else
	return task->thread_info.flags & (1ul << 22); /* TIF_32BIT */
#endif
}

/* What rt_sigreturn returns is what the interrupted code had in that register. */
static __always_inline bool has_failed(long ret, __u32 how)
{
	return (__u64)ret >= (__u64)-4095 && !(how & FBT_TRAIT_SIGRETURN);
}

static __always_inline void add_call(struct fbt_sum *sum, __u64 duration, long ret, __u32 how)
{
	sum->calls++;
	sum->ns += duration;
	if (has_failed(ret, how))
		sum->errors++;
	if (duration > sum->max_ns)
		sum->max_ns = duration;
}

/*
 * What thread_stacks has of the current thread, beyond the address: 0, it is not traced; below
 * FBT_SLOTS_MAX, perhaps its slot. regs is the address of the thread's registers, which a raw
 * tracepoint receives as a number.
 */
static __always_inline __u64 recall(__u64 regs)
{
	__u64 *known = known_stack(regs);

	return known ? *known - stack_key(regs) : 0;
}

/* The slot of the current thread, of which recall() has returned that; NULL: it is not traced. */
static __always_inline struct fbt_slot *find_slot(struct task_struct *task, __u64 regs,
						  __u64 recalled, __u32 *index)
{
	struct fbt_slot *slot;

	if (recalled < FBT_SLOTS_MAX) {
		*index = recalled;
		slot = bpf_map_lookup_elem(&slots, index);
		if (slot && slot->tid == (__u32)task->pid)
			return slot;
	}
	*index = learn_stack(regs);
	return *index ? bpf_map_lookup_elem(&slots, index) : NULL;
}

SEC("raw_tp/sys_enter")
int handle_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 regs = ctx->args[0], recalled = recall(regs);
	long id = ctx->args[1];
	__u32 index;

	/* Of a thread that is not traced nothing more is asked. */
	if (!recalled)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct fbt_slot *slot = find_slot(task, regs, recalled, &index);

	if (!slot || is_probe_call(id))
		return 0;
	__u32 nr = is_32_bit(task) ? FBT_NR_COUNT - 1 : id;
	__u32 how = nr < FBT_NR_COUNT ? traits[nr] : 0;

	slot->nr = nr;
	if (slot->step_start_ns)
		enter_call(slot, task, nr, how);
	__u64 now = bpf_ktime_get_ns(), busy = slot->busy;

	/* The end of the last call was not seen (loader__missed_calls): as if it took no time. */
	if (busy & 1)
		busy += (slot->start_ns << 1) - 1;
	slot->start_ns = now;
	slot->busy = busy - ((now << 1) - 1);
	if (!(how & (FBT_TRAIT_FUTEX | FBT_FD_WRITES)))
		return 0;
	if (how & FBT_FD_WRITES) {
		if (call_detail >= FBT_DETAIL_ESCALATED && answers_wanted)
			enter_write(slot, index);
		return 0;
	}
	if (call_detail >= FBT_DETAIL_ESCALATED && !slot->step_start_ns)
		slot->call_delay_ns = run_delay_of(task);
	if (has_news(slot))
		enter_futex(slot, index);
	return 0;
}

/* A call of the step, of these traits, has returned. */
static __always_inline void leave_known_call(struct fbt_slot *slot, __u32 how, __u64 start,
					     __u64 duration, long ret, __u64 delay)
{
	if (how & FBT_TRAIT_FUTEX) {
		if (slot->call_gil)
			leave_gil(slot, start + duration, ret, duration, delay);
		leave_wait(slot);
	} else if (how & FBT_TRAIT_SIGRETURN) {
		leave_handler(slot);
	} else if (ret >= 0 && slot->call_flags) {
		leave_made(slot, ret);
	}
}

/* The rate guard may have cut off the step in which the wait was noted. */
static __always_inline void leave_outside_futex(struct fbt_slot *slot, __u64 start, __u64 duration,
						long ret)
{
	if (slot->call_gil)
		leave_gil(slot, start + duration, ret, duration, 0);
	leave_wait(slot);
}

SEC("raw_tp/sys_exit")
int handle_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 regs = ctx->args[0], recalled = recall(regs);
	long ret = ctx->args[1];
	__u32 index;

	/* Of a thread that is not traced nothing more is asked. */
	if (!recalled)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct fbt_slot *slot = find_slot(task, regs, recalled, &index);

	if (!slot)
		return 0;
	__u64 now = bpf_ktime_get_ns(), start = slot->start_ns;

	if (!start) {
		leave_unseen_call(slot, index, now);
		return 0;
	}
	__u64 duration = now - start, delay = 0;
	__u32 nr = slot->nr < FBT_NR_COUNT ? slot->nr : FBT_NR_COUNT - 1, flags = 0;
	__u32 how = traits[nr], at = index * FBT_NR_COUNT + nr;
	struct fbt_sum *row = bpf_map_lookup_elem(&rows, &at);

	slot->start_ns = 0;
	slot->busy += (now << 1) - 1;
	if (row)
		add_call(row, duration, ret, how);
	if (duration >= FBT_LONG_NS && call_detail >= FBT_DETAIL_ESCALATED)
		leave_long_call(slot, index, start, start + duration);
	if (slot->step_start_ns) {
		__u32 which = how >> FBT_CATEGORY_SHIFT;

		delay = leave_call(slot, task, duration);
		if (which < FBT_CATEGORY_COUNT) {
			add_call(&slot->sums[which], duration, ret, how);
			/* What is at an address may be another mapping from now on. */
			if (which == FBT_MMAP)
				slot->area_end = 0;
			if (delay)
				slot->call_delays_ns[which] += delay;
			if (call_detail >= FBT_DETAIL_ESCALATED &&
			    slot->sums[which].ns >= slot->sum_limits_ns[which])
				copy_short_call(slot, which, start, duration);
		}
		if (how & (FBT_TRAIT_FUTEX | FBT_TRAIT_SIGRETURN | FBT_FD_MADE))
			leave_known_call(slot, how, start, duration, ret, delay);
		if (call_detail < FBT_DETAIL_ESCALATED)
			return 0;
		flags = slot->call_flags;
	} else {
		if (how & FBT_TRAIT_FUTEX)
			leave_outside_futex(slot, start, duration, ret);
		if (call_detail != FBT_DETAIL_ALL)
			return 0;
	}
	if (!is_summed(slot, how, index, start, duration, ret, flags, delay))
		send_call(slot, index, start, duration, ret, flags, delay);
	return 0;
}

/* Every signal of the machine that is delivered to a handler, or ends a process, comes by here. */
SEC("tp_btf/signal_deliver")
int BPF_PROG(handle_signal, int number, void *info, struct k_sigaction *action)
{
	__u32 index;
	struct fbt_slot *slot = current_slot(&index);

	if (slot && slot->step_start_ns && (__u64)action->sa.sa_handler > SIG_IGN)
		enter_handler(slot);
	return 0;
}

/* The slot of the current thread, if it is in a step and in no call of it. */
static __always_inline struct fbt_slot *slot_outside(void)
{
	__u32 index;
	struct fbt_slot *slot = current_slot(&index);

	return slot && slot->step_start_ns && !slot->start_ns ? slot : NULL;
}

SEC("perf_event")
int handle_fault_begin(struct bpf_perf_event_data *ctx)
{
	return begin_fault(slot_outside(), ctx->addr);
}

/* Of a minor and of a major fault. */
SEC("perf_event")
int handle_fault_end(struct bpf_perf_event_data *ctx)
{
	return end_fault(slot_outside(), ctx->addr);
}

/* Reports a process to the loader. The loader reads its names, because that is not safe here. */
static __always_inline bool announce(__u32 tgid, __u32 parent_tgid, __u16 flags)
{
	struct fbt_target *target = bpf_ringbuf_reserve(&events, sizeof(*target), 0);

	if (!target) {
		count_lost(FBT_LOST_NAMES);
		return false;
	}
	target->header.type = FBT_EVENT_TARGET;
	target->header.flags = flags;
	target->header.size = sizeof(*target);
	target->start_ns = bpf_ktime_get_ns();
	target->tgid = tgid;
	target->parent_tgid = parent_tgid;
	bpf_ringbuf_submit(target, BPF_RB_NO_WAKEUP);
	return true;
}

/* PID of kthreadd, the parent of all kernel threads. Kernel threads make no syscalls. */
#define KTHREADD 2

SEC("tp_btf/sched_process_fork")
int BPF_PROG(handle_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = child->tgid;
	__u32 parent_tgid = parent->tgid;
	__u16 *stale = slot_of_tid(child->pid);
	struct fbt_target_state fresh = {};

	if (!bpf_map_lookup_elem(&targets, &parent_tgid)) {
		/*
		 * A thread that ended while the loader gave it a slot may have left its entry:
		 * clear it. Keep the entry of a process in targets, which the loader may have
		 * found in /proc before this program runs.
		 */
		if (stale && *stale && !bpf_map_lookup_elem(&targets, &tgid))
			*stale = 0;
		if (!trace_all || tgid == parent_tgid || parent_tgid == self_tgid ||
		    parent_tgid == KTHREADD)
			return 0;
	}
	if (tgid != parent_tgid) {
		if (!follow && !trace_all)
			return 0;
		fresh.sites_of = parent_tgid;
		if (bpf_map_update_elem(&targets, &tgid, &fresh, BPF_ANY)) {
			count_lost(FBT_LOST_NAMES);
			return 0;
		}
		/* The loader would never remove it, and the id is given to another process later.
		 */
		if (!announce(tgid, parent_tgid, 0)) {
			bpf_map_delete_elem(&targets, &tgid);
			return 0;
		}
	}
	begin_thread(child);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(handle_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	__u16 *id = slot_of_tid(task->pid);

	if (!id || !*id)
		return 0;
	__u32 index = *id;
	struct fbt_slot *slot = bpf_map_lookup_elem(&slots, &index);
	struct fbt_target_state *target = bpf_map_lookup_elem(&targets, &tgid);
	__u64 now = bpf_ktime_get_ns();

	*id = 0;
	forget_stack(task);
	if (!slot)
		return 0;
	if (slot->step_start_ns)
		close_step(slot, now, FBT_END_EXITED);
	if (slot->spin_end_ns)
		end_spin(slot);
	if (target)
		__sync_fetch_and_add(&target->exits_begun, 1);
	store_barrier();
	set_slot_tgid(index, 0);
	store_barrier();
	if (target) {
		__sync_fetch_and_add(&target->ended_busy_ns, fbt_busy_ns(slot->busy, now));
		store_barrier();
		__sync_fetch_and_add(&target->exits_done, 1);
	}
	slot->died_ns = now;
	slot->died_cpu_ns = cpu_use_of(task);
	slot->died_delay_ns = run_delay_of(task);
	bpf_get_current_comm(slot->died_comm, sizeof(slot->died_comm));
	store_barrier();
	*(volatile __u32 *)&slot->state = FBT_SLOT_DEAD;
	return 0;
}

#define SIGSTOP 19

static __always_inline void stop_command(__u32 tgid)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);

	if (c && c->command_tgid == tgid)
		bpf_send_signal(SIGSTOP);
}

/* A process whose beginning was lost: if it would be traced, it is from here on. */
static __always_inline void adopt(struct task_struct *task, __u32 tgid)
{
	__u32 parent_tgid = task->real_parent->tgid;
	struct fbt_target_state fresh = {};

	if (trace_all ? parent_tgid == self_tgid || parent_tgid == KTHREADD
		      : !follow || !bpf_map_lookup_elem(&targets, &parent_tgid))
		return;
	if (bpf_map_update_elem(&targets, &tgid, &fresh, BPF_ANY))
		return;
	if (announce(tgid, parent_tgid, 0))
		begin_thread(task);
	else
		bpf_map_delete_elem(&targets, &tgid);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(handle_exec, struct task_struct *task, int old_tid)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);
	struct fbt_target_state fresh = {};
	__u32 tgid = task->tgid;
	__u16 *old_id = slot_of_tid(old_tid);
	__u16 *id = slot_of_tid(task->pid);
	struct fbt_target_state *target = bpf_map_lookup_elem(&targets, &tgid);

	if (!c || !id || !old_id)
		return 0;
	if (target)
		target->sites_of = 0;
	if (c->pending_tgid == tgid) {
		c->pending_tgid = 0;
		bpf_map_update_elem(&targets, &tgid, &fresh, BPF_ANY);
		begin_thread(task);
		/* Stop the process only if the loader was told: the loader has to continue it. */
		if (announce(tgid, 0, 0))
			stop_command(tgid);
		return 0;
	}
	__u32 index = *old_id;
	struct fbt_slot *slot = index ? bpf_map_lookup_elem(&slots, &index) : NULL;

	if (!slot) {
		if (!target)
			adopt(task, tgid);
		return 0;
	}
	/* A thread that is not the leader takes over its thread ID; the leader has ended. */
	if (task->pid != old_tid) {
		*old_id = 0;
		slot->tid = task->pid;
		*id = index;
	}
	if (slot->step_start_ns)
		close_step(slot, bpf_ktime_get_ns(), FBT_END_EXITED);
	/* Its stacks are gone. */
	slot->unseen_sp = 0;
	slot->away_sp = 0;
	slot->left_sp = 0;
	slot->gc_start_ns = 0;
	announce(tgid, 0, task->pid != old_tid ? FBT_TARGET_NEW_LEADER : 0);
	return 0;
}

/*
 * A probe that had to be attached in all processes, and is for another one than this. Not inlined,
 * for the stack of handle_step: see pass_gc().
 */
static __noinline bool is_for_other(__u64 cookie, const struct fbt_control *c)
{
	__u32 only = cookie >> FBT_PROBE_ONLY_SHIFT & (FBT_ONLY_COUNT - 1);

	return only && c->only_tgids[only] != bpf_get_current_pid_tgid() >> 32;
}

/* Entry and exit probes share this program, so that one link holds all probes of a file. */
SEC("uprobe")
int handle_step(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);

	use_own_stack(ctx);
	/* Detaching takes 20 to 40 ms: a step must not seem to last until it is over. */
	if (!c || c->closed == FBT_CLOSED || (c->closed && !(cookie & FBT_PROBE_END)))
		return 0;
	if (is_for_other(cookie, c))
		return 0;
	if (cookie & FBT_PROBE_GC)
		return pass_gc(ctx, cookie);
	if (cookie & FBT_PROBE_STOP) {
		stop_command(bpf_get_current_pid_tgid() >> 32);
		return 0;
	}
	if (cookie & FBT_PROBE_SITE)
		return pass_site(ctx, cookie, c);
	if (cookie & (FBT_PROBE_FOLLOWED | FBT_PROBE_JUMP))
		return pass_exit(ctx, cookie, c);
	count_hit(cookie);
	return cookie & FBT_PROBE_END ? end_step(ctx, cookie, c) : begin_step(ctx, cookie, c);
}
