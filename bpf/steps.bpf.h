/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Begin and end of steps. A step is the outermost call of a probed function on its thread. Nested
 * calls are recognized by comparing stack pointers, because a depth counter would never return to
 * zero after an exception.
 */
#ifndef FBT_STEPS_BPF_H
#define FBT_STEPS_BPF_H

#include <bpf/bpf_tracing.h>
#include "args.bpf.h"
#include "calls.bpf.h"
#include "faults.bpf.h"
#include "frames.bpf.h"
#include "handlers.bpf.h"
#include "limits.bpf.h"
#include "spins.bpf.h"
#include "stalls.bpf.h"
#include "team.bpf.h"

/* After a shorter step, the next step does not walk the other threads: it would cost too much. */
#define WALK_MIN_NS 200000

/* Probes are not switched twice within this time, 1 us: fbt_step.turn. */
#define TURN_SHIFT 10

static __always_inline struct fbt_hits *current_hits(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&step_hits, &cpu);
}

/* Syscall time, up to now, of the other threads of the process; sets unsure if not known. */
static __always_inline struct busy_sum sum_others(struct fbt_slot *slot, __u64 now)
{
	struct busy_sum sum = {.now = now, .tgid = slot->tgid, .unsure = 1};

	sum_busy(&sum);
	sum.ns -= fbt_busy_ns(slot->busy, now);
	return sum;
}

/*
 * Whether the calls of the others can have taken less time than when the step began. A walk takes
 * calls that end or begin during it for longer or shorter, by at most its own time.
 */
static __always_inline bool is_sum_possible(const struct busy_sum *sum, __u64 begun_ns)
{
	return sum->ns + sum->threads * (__u64)WALK_MAX_NS >= begun_ns;
}

/*
 * Adds the duration of a walk to the counters. Each walk is measured, because its duration depends
 * on the number of threads. delay is run_delay_of() the task when the walk began; with it the time
 * in which other tasks ran is subtracted.
 */
static __always_inline void count_walk(struct fbt_slot *slot, __u64 ns, struct task_struct *task,
				       __u64 delay)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);
	struct fbt_hits *hits = current_hits();

	delay = run_delay_of(task) - delay;
	ns = ns > delay ? ns - delay : 0;
	if (c)
		__sync_fetch_and_add(&c->walk_ns, ns);
	if (c && c->charge_ns)
		slot->debt_ns += ns;
	if (hits)
		__sync_fetch_and_add(&hits->walk_ns[slot->step_kind & (FBT_KIND_COUNT - 1)], ns);
}

/* The step ends in a call: at the end of its thread. */
static __always_inline void leave_open_call(struct fbt_slot *slot, struct task_struct *task,
					    __u64 now)
{
	__u32 nr = slot->nr < FBT_NR_COUNT ? slot->nr : FBT_NR_COUNT - 1;
	__u64 delay = leave_call(slot, task, now - slot->start_ns);
	__u32 which = traits[nr] >> FBT_CATEGORY_SHIFT;

	if (which < FBT_CATEGORY_COUNT)
		slot->call_delays_ns[which] += delay;
}

/* The state is in the future itself, which its owner keeps at least until control is back there. */
static __always_inline void end_future(struct fbt_step *step, struct fbt_slot *slot)
{
	step->await_ns = 0;
	step->future = slot->step_future;
	step->polls = 0;
	step->turn = 0;
	step->state_before = 0;
	step->state_after = 0;
	step->reserved_state = 0;
	step->reserved_future = 0;
	if (!slot->step_future)
		return;
	step->turn = slot->step_turn;
	step->state_before = slot->step_state;
	step->state_after = read_state(slot->step_state_at);
	slot->step_flags |= FBT_STEP_POLL;
}

static __always_inline void fill_gap(struct fbt_gap *gap, const struct fbt_slot *slot, __u64 start)
{
	gap->header.type = FBT_EVENT_GAP;
	gap->header.flags = 0;
	gap->header.size = sizeof(*gap);
	gap->tgid = slot->tgid;
	gap->tid = slot->tid;
	gap->start_ns = start;
	gap->cpu_ns = slot->gap_cpu_ns;
	gap->delay_ns = slot->gap_delay_ns;
}

/* All but other_syscall_ns, threads, flags, limits and steal_us. */
static __always_inline void fill_step(struct fbt_step *step, const struct fbt_slot *slot,
				      struct task_struct *task, __u64 start, __u64 now, __u32 end)
{
	step->header.type = FBT_EVENT_STEP;
	step->header.size = sizeof(*step);
	step->tgid = slot->tgid;
	step->tid = slot->tid;
	step->kind = slot->step_kind;
	step->end = end;
	step->start_ns = start;
	step->end_ns = now;
	step->thread_ns = now - start;
	step->gap_ns = slot->gap_ns;
	step->gap_syscall_ns = slot->gap_syscall_ns;
	step->lost_calls = slot->lost_calls - slot->step_lost_calls;
	step->arg_mask = slot->arg_mask;
	step->run_delay_ns = slot->step_delay_ns;
	step->minor_faults = task->min_flt - slot->step_minor_faults;
	step->major_faults = task->maj_flt - slot->step_major_faults;
	step->cpu_ns = slot->step_cpu_ns;
	step->asleep_ns = slot->step_asleep_ns;
	step->fault_wait_ns = slot->step_fault_wait_ns;
	__builtin_memcpy(step->call_delay_ns, slot->call_delays_ns, sizeof(step->call_delay_ns));
	__builtin_memcpy(step->args, slot->args, sizeof(step->args));
	__builtin_memcpy(step->sums, slot->sums, sizeof(step->sums));
	step->handlers_ns = slot->handlers_ns;
	step->handlers = slot->handlers_done;
	step->handlers_left = slot->handlers_begun - slot->handlers_done;
}

/*
 * Before all the rest of close_step(), as another thread may take the CPU before that ends. Returns
 * the run_delay_of() the task.
 */
static __always_inline __u64 end_clocks(struct fbt_slot *slot, struct task_struct *task, __u64 now)
{
	__u64 delay;

	slot->step_cpu_ns = cpu_clock(task, now) - slot->step_cpu_ns;
	delay = run_delay_of(task);
	if (slot->start_ns) {
		leave_open_call(slot, task, now);
		delay = run_delay_of(task);
	} else if (task->nvcsw != slot->awake_switches) {
		note_sleep(slot, SLEPT_OUTSIDE);
	}
	slot->step_delay_ns = delay - slot->step_delay_ns;
	return delay;
}

__noinline int close_step(struct fbt_slot *slot, __u64 now, __u32 end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct busy_sum others = {.unsure = 1};
	struct fbt_ring_step *ring;
	struct fbt_step *step;
	__u64 start, delay;

	if (!slot)
		return 0;
	slot->step_closing = 1;
	/* The loader too may close the step, when it switches probes off: the exchange decides. */
	start = __sync_lock_test_and_set(&slot->step_start_ns, 0);
	if (!start) {
		slot->step_closing = 0;
		return 0;
	}
	delay = end_clocks(slot, task, now);
	/* Its calls come before it, and what of them is lost is its loss. */
	if (slot->spin_end_ns)
		end_spin(slot);
	if (!(slot->step_flags & FBT_STEP_OTHER_UNKNOWN))
		others = sum_others(slot, now);
	if (others.unsure || !is_sum_possible(&others, slot->step_others_ns) ||
	    bpf_ktime_get_ns() - now > WALK_MAX_NS)
		slot->step_flags |= FBT_STEP_OTHER_UNKNOWN;
	ring = bpf_ringbuf_reserve(&events, sizeof(*ring), 0);
	if (!ring) {
		count_lost(FBT_LOST_STEPS);
		goto out;
	}
	step = &ring->step;
	fill_step(step, slot, task, start, now, end);
	end_limits(&step->limits, slot, task, start, now, step->minor_faults | step->major_faults);
	step->steal_us = end_steal(slot, task);
	end_team(step, slot, task, start, now);
	fill_faults(step, slot);
	end_future(step, slot);
	fill_stalls(&ring->stalls, slot, start);
	fill_gap(&ring->gap, slot, start);

	step->other_syscall_ns = 0;
	if (!(slot->step_flags & FBT_STEP_OTHER_UNKNOWN) && others.ns > slot->step_others_ns)
		step->other_syscall_ns = others.ns - slot->step_others_ns;
	step->threads = others.threads;
	step->header.flags = slot->step_flags;
	bpf_ringbuf_submit(ring, BPF_RB_NO_WAKEUP);
out:
	slot->step_closing = 0;
	slot->step_last_ns = now - start;
	/* Read the clock again, because the walk above is not part of the gap. */
	slot->step_end_ns = bpf_ktime_get_ns();
	count_walk(slot, slot->step_end_ns - now, task, delay);
	slot->step_end_busy_ns = fbt_busy_ns(slot->busy, slot->step_end_ns);
	slot->step_end_cpu_ns = cpu_clock(task, slot->step_end_ns);
	slot->step_end_delay_ns = run_delay_of(task);
	return 0;
}

/*
 * Whether the open step continues in this function, after a tail call. The frame tells: the stack
 * pointer and the return address. They are the same after an exception too, if the caller then
 * calls from the same place again. So a function continues in itself only if it may jump to itself.
 */
static __always_inline bool continues(struct fbt_slot *slot, struct pt_regs *ctx, __u64 cookie)
{
	bool is_same = slot->step_kind == (cookie & FBT_PROBE_KIND);
	__u64 address;

	if (!slot->step_tail || (is_same && !(cookie & FBT_PROBE_SELF)))
		return false;
	address = read_return(ctx, slot->step_sp, cookie);
	if (!returns_with(ctx, slot->step_return, address, cookie))
		return false;
	slot->step_tail = (cookie & FBT_PROBE_TAILS) != 0;
	slot->step_return = address;
	return true;
}

/*
 * Whether a begin at sp is inside the open step: a recursive call or an inner step function; or a
 * marker (USDT, sp ~0) in a function's step, where the frame that it is in tells. Between markers
 * nothing tells, so one of another pair is inside, and one of the same pair begins anew.
 */
static __always_inline bool is_nested(struct fbt_slot *slot, struct pt_regs *ctx, __u64 cookie,
				      __u64 sp)
{
	if (sp == slot->step_sp && cookie & FBT_PROBE_NO_SP)
		return slot->step_kind != (cookie & FBT_PROBE_KIND);
	if (sp == slot->step_sp)
		return continues(slot, ctx, cookie);
	/* In the function itself, which may keep nothing on the stack, it is the same. */
	if (cookie & FBT_PROBE_NO_SP)
		sp = PT_REGS_SP(ctx) - 1;
	return sp < slot->step_sp && !is_frame_left(ctx, slot->step_sp, slot->step_return);
}

/*
 * A thread needs more time than this from the beginning of a step to the next one: for the trap,
 * for the way back from it, and for leaving the function other than by a return.
 */
#define HITS_APART_NS 1000

/*
 * Whether the step that is open began at this very hit. After a thread other than the first has
 * called execve, the old and the new probes of the process may be in place together.
 */
static __always_inline bool is_same_hit(struct fbt_slot *slot, __u64 cookie, __u64 sp, __u64 now)
{
	return slot->step_kind == (cookie & FBT_PROBE_KIND) && sp == slot->step_sp &&
	       now - slot->step_start_ns < HITS_APART_NS;
}

/* A forked process has the code of the other one, and its probes, if they are for all processes. */
static __always_inline __u32 inherited_state(const struct fbt_site_key *key)
{
	__u32 tgid = key->tgid;
	struct fbt_target_state *target = bpf_map_lookup_elem(&targets, &tgid);
	struct fbt_site_key other = {.address = key->address, .jump_kind = key->jump_kind};
	struct fbt_site *site;

	if (!target || !target->sites_of)
		return FBT_SITE_TOLD;
	other.tgid = target->sites_of;
	site = bpf_map_lookup_elem(&sites, &other);
	return site && site->state == FBT_SITE_PROBED ? FBT_SITE_PROBED : FBT_SITE_TOLD;
}

/* Returns the state of the new site. */
static __always_inline __u32 tell_site(const struct fbt_site_key *key, __u32 kind)
{
	struct fbt_site told = {.kinds = 1ull << kind, .state = inherited_state(key)};
	struct fbt_ring_site *site;

	/* Another thread may have added it in the meantime, and tells it. */
	if (bpf_map_update_elem(&sites, key, &told, BPF_NOEXIST))
		return told.state;
	site = bpf_ringbuf_reserve(&events, sizeof(*site), 0);
	if (!site) {
		bpf_map_delete_elem(&sites, key);
		return told.state;
	}
	site->header.type = FBT_EVENT_SITE;
	site->header.flags = 0;
	site->header.size = sizeof(*site);
	site->address = key->address;
	site->tgid = key->tgid;
	site->kind = kind;
	site->jump_kind = key->jump_kind;
	site->reserved = 0;
	bpf_ringbuf_submit(site, BPF_RB_NO_WAKEUP);
	return told.state;
}

static __always_inline void count_unseen(__u32 kind)
{
	struct fbt_hits *hits = current_hits();

	if (hits)
		__sync_fetch_and_add(&hits->unseen[kind & (FBT_KIND_COUNT - 1)], 1);
}

/* Whether the end of a step that returns to address will be seen. */
static __always_inline bool is_end_seen(struct fbt_slot *slot, __u32 kind, __u64 address,
					const struct fbt_control *c)
{
	struct fbt_site_key key = {.address = address, .tgid = slot->tgid};
	struct fbt_site *site;

	slot->step_at_site = 0;
	if (!(c->learn_kinds >> kind & 1))
		return true;
	site = bpf_map_lookup_elem(&sites, &key);
	if (site) {
		slot->step_at_site = *(volatile __u32 *)&site->state == FBT_SITE_PROBED;
		if (!(site->kinds >> kind & 1))
			__sync_fetch_and_or(&site->kinds, 1ull << kind);
	} else if (address) {
		slot->step_at_site = tell_site(&key, kind) == FBT_SITE_PROBED;
	}
	if (slot->step_at_site || !(c->site_kinds >> kind & 1))
		return true;
	count_unseen(kind);
	return false;
}

/* What begins in the call from here on is a part of it. */
static __always_inline void note_unseen(struct fbt_slot *slot, __u32 kind, __u64 sp, __u64 address)
{
	slot->step_missed = 1;
	slot->unseen_kind = kind;
	slot->unseen_sp = sp;
	slot->unseen_return = address;
}

/*
 * Whether a begin at sp is inside a call that is not traced, whose step it would be a part of: then
 * it is no step, but counted.
 */
static __always_inline bool is_in_unseen(struct fbt_slot *slot, struct pt_regs *ctx, __u64 sp)
{
	if (sp < slot->unseen_sp && !may_be_left(ctx, slot->unseen_sp, slot->unseen_return))
		return true;
	if (sp != slot->unseen_sp)
		slot->unseen_sp = 0;
	return false;
}

/*
 * Whether a step that begins with that frame may be the end of a call that is not traced, after a
 * jump: it may as well be a later call from the same place, unless that one is probed by now.
 */
static __always_inline bool may_be_tail(struct fbt_slot *slot, struct pt_regs *ctx, __u64 cookie,
					__u64 sp, __u64 address)
{
	return slot->unseen_sp == sp && returns_with(ctx, slot->unseen_return, address, cookie) &&
	       slot->unseen_kind != (cookie & FBT_PROBE_KIND) && !slot->step_at_site;
}

static __always_inline void measure_gap(struct fbt_slot *slot, struct task_struct *task, __u64 now,
					const struct fbt_control *c)
{
	slot->gap_ns = 0;
	slot->gap_syscall_ns = 0;
	slot->gap_cpu_ns = 0;
	slot->gap_delay_ns = 0;
	if (slot->step_end_ns > c->switched_ns && !slot->step_missed) {
		slot->gap_ns = now - slot->step_end_ns;
		slot->gap_syscall_ns = fbt_busy_ns(slot->busy, now) - slot->step_end_busy_ns;
		slot->gap_cpu_ns = cpu_clock(task, now) - slot->step_end_cpu_ns;
		slot->gap_delay_ns = run_delay_of(task) - slot->step_end_delay_ns;
	} else {
		slot->step_flags |= FBT_STEP_NO_GAP;
	}
	slot->step_missed = 0;
}

/* Of the step before. */
static __always_inline void forget_parts(struct fbt_slot *slot)
{
	__builtin_memset(slot->sums, 0, sizeof(slot->sums));
	__builtin_memset(slot->sum_limits_ns, 0, sizeof(slot->sum_limits_ns));
	__builtin_memset(slot->call_delays_ns, 0, sizeof(slot->call_delays_ns));
	forget_files(slot);
	forget_handlers(slot);
	forget_faults(slot);
	begin_stalls(slot);
}

static __always_inline void open_step(struct fbt_slot *slot, struct pt_regs *ctx, __u64 cookie,
				      __u64 sp, const struct fbt_control *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct busy_sum others = {.unsure = 1};
	__u64 now = bpf_ktime_get_ns(), delay = run_delay_of(task);
	__u64 address = read_return(ctx, sp, cookie);

	if (!is_end_seen(slot, cookie & (FBT_KIND_COUNT - 1), site_of(ctx, address, cookie), c)) {
		note_unseen(slot, cookie & FBT_PROBE_KIND, sp, address);
		return;
	}
	slot->step_flags = has_run_delay(task) ? 0 : FBT_STEP_SCHED_UNKNOWN;
	if (has_cpu_clock(task))
		slot->step_flags |=
			FBT_STEP_CPU_KNOWN | (c->handlers_timed ? FBT_STEP_HANDLERS_TIMED : 0);
	if (call_detail == FBT_DETAIL_PROBES)
		slot->step_flags |= FBT_STEP_CALLS_UNKNOWN | FBT_STEP_OTHER_UNKNOWN;
	if (may_be_tail(slot, ctx, cookie, sp, address))
		slot->step_flags |= FBT_STEP_MAYBE_PART;
	slot->unseen_sp = 0;
	measure_gap(slot, task, now, c);
	if (c->sampled_kinds >> (cookie & (FBT_KIND_COUNT - 1)) & 1)
		slot->step_flags |= FBT_STEP_SAMPLED;
	if (slot->spin_end_ns)
		end_spin(slot);
	slot->step_asleep_ns = 0;
	slot->step_fault_wait_ns = 0;
	slot->step_lost_calls = slot->lost_calls;
	slot->step_kind = cookie & FBT_PROBE_KIND;
	slot->step_sp = sp;
	slot->step_tail = (cookie & FBT_PROBE_TAILS) != 0;
	slot->step_return = address;
	slot->left_sp = 0;
	/* An untraced thread may have used this stack before: this thread's calls were not seen. */
	if (!slot->step_end_ns)
		forget_stack(task);
	forget_parts(slot);
	read_args(slot, ctx, cookie);
	slot->step_turn = c->switched_ns >> TURN_SHIFT;
	if (call_detail != FBT_DETAIL_PROBES &&
	    (!slot->step_end_ns || slot->step_last_ns >= WALK_MIN_NS))
		others = sum_others(slot, now);
	begin_team(slot, task, now);
	/* The step begins here, because the walks above are not part of it. */
	slot->step_minor_faults = task->min_flt;
	slot->step_major_faults = task->maj_flt;
	begin_limits(slot, task, now);
	begin_steal(slot, task);
	wake_up(slot, task, bpf_ktime_get_ns());
	if (others.unsure || slot->awake_ns - now > WALK_MAX_NS)
		slot->step_flags |= FBT_STEP_OTHER_UNKNOWN;
	if (slot->awake_ns - now > walk_max_ns(slot->team_threads))
		slot->team_ns = 0;
	/* Without the time of these walks: calls that were open have gone on meanwhile. */
	slot->step_others_ns = others.ns + others.open * (slot->awake_ns - now);
	slot->step_cpu_ns = slot->awake_cpu_ns;
	slot->step_delay_ns = slot->awake_delay_ns;
	slot->step_start_ns = slot->awake_ns;
	count_walk(slot, slot->step_start_ns - now, task, delay);
}

/* Counts every hit of a probe: its trap costs the same, whether or not a step begins or ends. */
static __always_inline void count_hit(__u64 cookie)
{
	__u32 kind = cookie & (FBT_KIND_COUNT - 1);
	struct fbt_hits *hits = current_hits();

	if (!hits)
		return;
	if (cookie & FBT_PROBE_END)
		__sync_fetch_and_add(&hits->ends[kind], 1);
	else
		__sync_fetch_and_add(&hits->begins[kind], 1);
	if (cookie & FBT_PROBE_EMULATED)
		__sync_fetch_and_add(&hits->emulated[kind], 1);
}

/*
 * Charges a thread for its probes (fbt_hits.excess_ns). Threads are charged separately, so that a
 * thread that sleeps between its steps does not pay for another one.
 */
static __always_inline void charge_thread(struct fbt_slot *slot, __u64 cookie,
					  const struct fbt_control *c)
{
	__u64 own = bpf_ktime_get_ns() - run_delay_of(bpf_get_current_task_btf());
	__u64 time = 0, paid, excess = 0, charge;
	__u32 kind = cookie & (FBT_KIND_COUNT - 1);
	struct fbt_hits *hits = current_hits();

	if (!hits)
		return;
	if (slot->begin_own_ns && own > slot->begin_own_ns)
		time = own - slot->begin_own_ns;
	if (time > FBT_PAYS_MAX_NS)
		time = FBT_PAYS_MAX_NS;
	slot->begin_own_ns = own;
	paid = time * c->charge_part >> FBT_PART_SHIFT;
	slot->debt_ns -= paid < slot->debt_ns ? paid : slot->debt_ns;
	charge = c->site_kinds >> kind & 1 ? c->charge_site_ns : c->charge_ns;
	slot->debt_ns += charge;
	if ((c->sampled_kinds >> kind & 1) && slot->debt_ns > c->debt_max_ns / 2) {
		excess = charge;
		slot->debt_ns -= excess;
	}
	if (slot->debt_ns > c->debt_max_ns) {
		excess += slot->debt_ns - c->debt_max_ns;
		slot->debt_ns = c->debt_max_ns;
	}
	if (!excess)
		return;
	__sync_fetch_and_add(&hits->excess_ns[kind], excess);
	__sync_fetch_and_add(&hits->excess_own_ns, time);
}

/* Some probes of this kind are switched off: the end of the step might not be seen. */
static __always_inline bool is_off(__u64 cookie, const struct fbt_control *c)
{
	__u64 kind = 1ull << (cookie & (FBT_KIND_COUNT - 1));

	if (c->off_kinds & kind)
		return true;
	return c->attaching_kinds & kind && c->attaching_tgid == bpf_get_current_pid_tgid() >> 32;
}

/*
 * The slot of a thread that has run into a probe: so it is in no call. If its slot says that it is,
 * the end of that call was not seen (loader__missed_calls), and it counts as if it took no time.
 */
static __always_inline struct fbt_slot *probed_slot(__u32 *index)
{
	struct fbt_slot *slot = current_slot(index);

	if (slot && slot->start_ns) {
		slot->busy += (slot->start_ns << 1) - 1;
		slot->start_ns = 0;
		slot->call_gil = 0;
		leave_wait(slot);
	}
	return slot;
}

static __always_inline int begin_step(struct pt_regs *ctx, __u64 cookie,
				      const struct fbt_control *c)
{
	__u64 sp = (cookie & FBT_PROBE_NO_SP) ? ~0ull : entry_sp(ctx, cookie);
	__u32 index;
	struct fbt_slot *slot;

	if (is_off(cookie, c))
		return 0;
	slot = probed_slot(&index);
	if (slot && c->charge_ns)
		charge_thread(slot, cookie, c);
	if (!slot) {
		__u32 tgid = bpf_get_current_pid_tgid() >> 32;

		if (bpf_map_lookup_elem(&targets, &tgid))
			count_lost(FBT_LOST_BEGINS);
		return 0;
	}
	if (slot->step_start_ns) {
		__u64 now = bpf_ktime_get_ns();

		if (is_nested(slot, ctx, cookie, sp) || is_same_hit(slot, cookie, sp, now)) {
			if (slot->inner_wanted && sp < slot->step_sp)
				begin_inner(ctx, slot, cookie, sp, now);
			return 0;
		}
		close_step(slot, now, FBT_END_UNWOUND);
	}
	if (slot->unseen_sp && is_in_unseen(slot, ctx, sp)) {
		count_unseen(cookie);
		return 0;
	}
	if (slot->away_sp && slot->away_sp == sp) {
		slot->away_sp = 0;
		count_unseen(cookie);
		note_unseen(slot, cookie & FBT_PROBE_KIND, sp, read_return(ctx, sp, cookie));
		return 0;
	}
	open_step(slot, ctx, cookie, sp, c);
	return 0;
}

/*
 * Control is back in the caller, so the step is over unless it is further down the stack. Other
 * code passes here too: other callees of an indirect call, calls within a step, threads that are
 * not traced.
 */
static __always_inline int pass_site(struct pt_regs *ctx, __u64 cookie, const struct fbt_control *c)
{
	__u64 sp = entry_sp(ctx, cookie);
	struct fbt_hits *hits = current_hits();
	__u32 index;
	struct fbt_slot *slot = probed_slot(&index);
	__u32 kind = cookie & (FBT_KIND_COUNT - 1), end = FBT_END_RETURN;
	bool is_end = slot && slot->step_start_ns && sp >= slot->step_sp;
	bool is_after_exit = slot && !slot->step_start_ns && sp == slot->left_sp;

	if (!hits)
		return 0;
	if (is_end || is_after_exit)
		__sync_fetch_and_add(&hits->confirmed[kind], 1);
	else
		__sync_fetch_and_add(&hits->strangers[kind], 1);
	/*
	 * Hits by other code are not calls of the function, so the rate guard must not give the
	 * function up for them. If it has no other end they count; else the loader soon gives up
	 * the site.
	 */
	if (is_end || is_after_exit || c->site_kinds >> kind & 1)
		count_hit(cookie);
	if (is_after_exit)
		slot->left_sp = 0;
	if (!is_end)
		return 0;
	if (sp > slot->step_sp)
		end = FBT_END_UNWOUND;
	else if (c->closed)
		end = FBT_END_TRUNCATED;
	close_step(slot, bpf_ktime_get_ns(), end);
	return 0;
}

#ifdef __TARGET_ARCH_x86
/* Where a jump leads to, by its operand (FBT_JUMP_*). 0 if that is not known. */
static __noinline __u64 jump_target(struct pt_regs *ctx, __u32 operand)
{
	/* The verifier allows only constant offsets into the context. */
	volatile __u64 registers[FBT_JUMP_REGISTER_MASK + 1] = {
		ctx->ax, ctx->cx, ctx->dx,  ctx->bx,  ctx->sp,	ctx->bp,  ctx->si,  ctx->di,
		ctx->r8, ctx->r9, ctx->r10, ctx->r11, ctx->r12, ctx->r13, ctx->r14, ctx->r15,
	};
	__u64 base = registers[operand >> FBT_JUMP_BASE_SHIFT & FBT_JUMP_REGISTER_MASK];
	__u64 index = registers[operand >> FBT_JUMP_INDEX_SHIFT & FBT_JUMP_REGISTER_MASK];
	__u64 target = 0;

	if (!(operand & FBT_JUMP_MEMORY))
		return base;
	base = operand & FBT_JUMP_HAS_BASE ? base : 0;
	index = operand & FBT_JUMP_HAS_INDEX ? index : 0;
	base += (index << (operand >> FBT_JUMP_SCALE_SHIFT & 3)) +
		((__s64)(__s32)operand >> FBT_JUMP_DISPLACEMENT_SHIFT);
	if (bpf_probe_read_user(&target, sizeof(target), (void *)base))
		return 0;
	return target;
}
#else
static __always_inline __u64 jump_target(struct pt_regs *ctx, __u32 operand)
{
	return 0;
}
#endif

/* Whether the returns of what a jump leads to are probed. The loader is told of one that is new. */
static __always_inline bool is_followed(struct pt_regs *ctx, struct fbt_slot *slot, __u64 cookie)
{
	__u32 kind = cookie & (FBT_KIND_COUNT - 1), operand = cookie >> FBT_PROBE_SP_SHIFT;
	struct fbt_site_key key = {
		.address = PT_REGS_IP(ctx),
		.tgid = slot->tgid,
		.jump_kind = kind,
	};
	struct fbt_site *site;

	if (operand) {
		key.address = jump_target(ctx, operand);
		key.jump_kind |= FBT_SITE_TARGET;
	}
	site = bpf_map_lookup_elem(&sites, &key);
	if (site)
		return *(volatile __u32 *)&site->state == FBT_SITE_PROBED;
	return tell_site(&key, kind) == FBT_SITE_PROBED;
}

/* The step's end would not be seen, so it is none: a call that is not traced. */
static __always_inline void drop_step(struct fbt_slot *slot)
{
	if (!__sync_lock_test_and_set(&slot->step_start_ns, 0))
		return;
	count_unseen(slot->step_kind);
	note_unseen(slot, slot->step_kind, slot->step_sp, slot->step_return);
}

/*
 * A jump of the step function which may not be followed. Where the function begins with it, both
 * probes are hit at once, in any order: the begin may be yet to come.
 */
static __always_inline int pass_jump(struct pt_regs *ctx, struct fbt_slot *slot, __u64 cookie)
{
	bool is_begun = slot->step_start_ns != 0;
	__u64 sp = PT_REGS_SP(ctx);

	if (cookie & FBT_PROBE_AT_BEGIN) {
		is_begun = is_begun && is_same_hit(slot, cookie, sp, bpf_ktime_get_ns());
		slot->away_sp = 0;
	}
	if ((is_begun && (slot->step_kind != (cookie & FBT_PROBE_KIND) || sp != slot->step_sp)) ||
	    is_followed(ctx, slot, cookie))
		return 0;
	if (is_begun)
		drop_step(slot);
	else if (cookie & FBT_PROBE_AT_BEGIN)
		slot->away_sp = sp;
	return 0;
}

/*
 * A return of a function that the step function jumps to, which others call too; or a jump that is
 * not followed. The stack pointer tells whether it is that of the step, and the return address,
 * whether the step's frame is still there.
 */
static __always_inline int pass_exit(struct pt_regs *ctx, __u64 cookie, const struct fbt_control *c)
{
	__u64 sp = PT_REGS_SP(ctx);
	struct fbt_hits *hits = current_hits();
	__u32 kind = cookie & (FBT_KIND_COUNT - 1);
	__u32 end = c->closed ? FBT_END_TRUNCATED : FBT_END_RETURN, index;
	struct fbt_slot *slot;

	if (!hits)
		return 0;
	count_hit(cookie);
	slot = probed_slot(&index);
	/* Linux 5.15 loses track of what is not compared at once. */
	if (!slot)
		goto stranger;
	if (cookie & FBT_PROBE_AT_BEGIN)
		return pass_jump(ctx, slot, cookie);
	if (!slot->step_start_ns || sp < slot->step_sp)
		goto stranger;
	__sync_fetch_and_add(&hits->confirmed[kind], 1);
	if (sp > slot->step_sp || is_frame_left(ctx, slot->step_sp, slot->step_return))
		end = FBT_END_UNWOUND;
	else if (cookie & FBT_PROBE_JUMP)
		return pass_jump(ctx, slot, cookie);
	slot->left_sp = slot->step_sp;
	close_step(slot, bpf_ktime_get_ns(), end);
	return 0;
stranger:
	if (!(cookie & FBT_PROBE_AT_BEGIN))
		__sync_fetch_and_add(&hits->strangers[kind], 1);
	return 0;
}

static __always_inline int end_step(struct pt_regs *ctx, __u64 cookie, const struct fbt_control *c)
{
	__u64 sp = PT_REGS_SP(ctx);
	__u32 index;
	struct fbt_slot *slot = probed_slot(&index);
	__u32 end = c->closed ? FBT_END_TRUNCATED : FBT_END_RETURN;

	if (!slot || !slot->step_start_ns)
		return 0;
#ifdef __TARGET_ARCH_x86
	if (cookie & FBT_PROBE_RETURN)
		sp -= sizeof(__u64);
#endif
	if (cookie & FBT_PROBE_NO_SP) {
		/* The open step is that of a function, or of another pair: this one did not begin.
		 */
		if (slot->step_sp != ~0ull || slot->step_kind != (cookie & FBT_PROBE_KIND))
			return 0;
	} else {
		if (sp < slot->step_sp) {
			if (slot->inner_wanted)
				end_inner(slot, sp);
			return 0;
		}
		if (sp > slot->step_sp && end == FBT_END_RETURN)
			end = FBT_END_UNWOUND;
		if (sp == slot->step_sp && (cookie & FBT_PROBE_RAISED) && end == FBT_END_RETURN)
			end = FBT_END_RAISED;
		slot->left_sp = slot->step_sp;
	}
	close_step(slot, bpf_ktime_get_ns(), end);
	return 0;
}

#endif
