/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Who ended a long futex wait of a step, and what that thread did during it. The waiter and the
 * waker meet at the address, in the programs that are attached anyway. See struct fbt_wait.
 */
#ifndef FBT_WAKES_BPF_H
#define FBT_WAKES_BPF_H

#include "calls.bpf.h"
#include "stacks.bpf.h"

#ifdef __TARGET_ARCH_x86
#define NR_FUTEX	   202
#define NR_RESTART_SYSCALL 219 /* futex, after a stop */
#define THIRD_OF(regs)	   ((regs)->dx)
#else
#define NR_FUTEX	   98
#define NR_RESTART_SYSCALL 128
#define THIRD_OF(regs)	   ((regs)->user_regs.regs[2])
#endif

#define OP_MASK 0x7f /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define OP(n)	(1u << (n))
#define WAKE	1
/* WAIT, LOCK_PI, WAIT_BITSET, LOCK_PI2 */
#define WAIT_OPS  (OP(0) | OP(LOCK_PI) | OP(9) | OP(LOCK_PI2))
#define LOCK_PI	  6
#define UNLOCK_PI 7
#define LOCK_PI2  13
/* WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, UNLOCK_PI, WAKE_BITSET */
#define WAKE_OPS (OP(WAKE) | OP(3) | OP(4) | OP(5) | OP(UNLOCK_PI) | OP(10))
/* Those that may wake nobody, and move the waiter to another address: musl does so. */
#define REQUEUE_OPS (OP(3) | OP(4))

/* No operation of futex: a write, see bpf/answers.bpf.h. */
#define OP_ANSWER 31

/* Where a wait in another call than futex is noted: no user has such addresses. */
static __always_inline __u64 answer_address(__u32 index)
{
	return 1ull << 63 | index;
}

/* The values of a lock of glibc and of Rust: 0 free, 1 held, 2 held and waited for. */
#define LOCK_WAITED_FOR 2

static __always_inline struct fbt_wait *wait_at(__u32 tgid, __u64 address)
{
	__u64 hash = (address ^ (__u64)tgid << 32) * 0x9e3779b97f4a7c15ull;
	__u32 place = (hash >> 32) % FBT_WAITS;

	return bpf_map_lookup_elem(&waits, &place);
}

/*
 * Waits that are noted and open: while there are none, wakers need not be asked what they wake. One
 * that is never left, because its thread was killed, costs time only. Waiters write to it, and what
 * else is in that section is read at each call: so it has a line of the cache to itself.
 */
static volatile struct {
	__u64 count;
	__u64 unused[7];
} open_waits __attribute__((aligned(64)));

/* A wait that is still open keeps its place: a later one may be of the same address. */
static __always_inline void note_wait(struct fbt_slot *slot, __u32 index)
{
	struct fbt_wait *wait = wait_at(slot->tgid, slot->call_args[0]);

	if (!wait)
		return;
	__sync_fetch_and_add(&open_waits.count, 1);
	slot->call_flags |= FBT_CALL_NOTED;
	__u32 other = wait->slot;

	if (other != index) {
		struct fbt_slot *waiter = bpf_map_lookup_elem(&slots, &other);

		if (waiter && wait->start_ns && waiter->start_ns == wait->start_ns)
			return;
	}
	wait->address = slot->call_args[0];
	wait->tgid = slot->tgid;
	wait->slot = index;
	wait->unread = 0;
	wait->since_ns = slot->call_gil ? slot->gil_since_ns : 0;
	wait->start_ns = slot->start_ns;
}

/*
 * The GIL goes from hand to hand while a thread waits for it. Who held it longest is to blame, not
 * the last one: that may be a thread that waited as well, and had it for a moment only.
 */
static __always_inline bool had_other_longer(const struct fbt_wait *wait, __u64 now)
{
	__u64 before = wait->waker.wake_ns;

	return before > wait->since_ns && before - wait->since_ns > now - before;
}

/* A lock only if the waiter agrees: see is_lock_wait(). */
static __always_inline __u32 wake_flags(struct fbt_wait *wait, __u32 op, __u32 count)
{
	__u32 word = ~0u;

	if (op == UNLOCK_PI)
		return FBT_WAKE_LOCK;
	if (op != WAKE || count != 1)
		return count > 1 ? FBT_WAKE_ALL : 0;
	bpf_probe_read_user(&word, sizeof(word), (void *)wait->address);
	return word <= LOCK_WAITED_FOR ? FBT_WAKE_LOCK : 0;
}

/* The thread, which is in no collection, has collected garbage for most of the time since then. */
static __always_inline bool has_collected(const struct fbt_slot *slot, __u64 since)
{
	__u64 begin = slot->gc_begin_ns > since ? slot->gc_begin_ns : since;

	return slot->gc_end_ns > begin && (slot->gc_end_ns - begin) * 2 >= slot->start_ns - since;
}

/* Not inlined: few waits are long. */
__noinline int note_wake(struct fbt_wait *wait, struct fbt_slot *slot, __u32 index, __u32 op,
			 __u32 count)
{
	struct fbt_past *past = bpf_map_lookup_elem(&pasts, &index);
	struct task_struct *task = bpf_get_current_task_btf();

	if (!wait || !slot || !past || __sync_lock_test_and_set(&wait->busy, 1))
		return 0;
	/* Threads outside of steps may wait at this address for ever. */
	if (++wait->unread > FBT_UNREAD_MAX)
		wait->address = 0;
	if (wait->since_ns && had_other_longer(wait, slot->start_ns)) {
		*(volatile __u32 *)&wait->busy = 0;
		return 0;
	}
	/* Until the wake before, another one may have had it. */
	wait->waker.took_ns = wait->since_ns && wait->waker.wake_ns > wait->since_ns
				      ? wait->waker.wake_ns
				      : wait->since_ns;
	wait->waker.wake_ns = slot->start_ns;
	wait->waker.since_ns = slot->born_ns;
	wait->waker.busy_ns = fbt_busy_ns(slot->busy, slot->start_ns);
	wait->waker.delay_ns = slot->call_delay_ns;
	wait->waker.cpu_ns = cpu_clock(task, slot->start_ns);
	wait->waker.switches = task->nvcsw;
	wait->waker.faults = task->maj_flt;
	wait->waker.minor_faults = task->min_flt;
	wait->waker.flags = wake_flags(wait, op, count);
	if (has_collected(slot, wait->since_ns ? wait->since_ns : wait->start_ns))
		wait->waker.flags |= FBT_WAKE_GC;
	if (past->tid == slot->tid)
		__builtin_memcpy(&wait->waker.past, past, sizeof(*past));
	else
		wait->waker.past.count = 0;
	wait->waker.past.tid = slot->tid;
	store_barrier();
	*(volatile __u32 *)&wait->busy = 0;
	if ((__s64)(slot->start_ns - wait->start_ns) >= (__s64)FBT_LIMIT_MIN_NS)
		copy_waker(wait, slot);
	return 0;
}

static __always_inline bool is_wait(__u64 argument)
{
	__u32 op = argument & OP_MASK;

	return op < 32 && (WAIT_OPS >> op & 1);
}

/* The futex call that is open was entered in a step, and waits. */
static __always_inline bool is_wait_of_step(const struct fbt_slot *slot)
{
	return slot->step_start_ns && is_wait(slot->call_args[1]);
}

static __always_inline void look_for_waits(struct fbt_slot *slot, struct task_struct *task,
					   __u32 index)
{
	if (is_wait_of_step(slot)) {
		note_wait(slot, index);
		return;
	}
	if (!open_waits.count)
		return;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 address = FIRST_OF(regs);
	__u32 op = SECOND_OF(regs) & OP_MASK;
	struct fbt_wait *wait = wait_at(slot->tgid, address);

	if (wait && wait->address == address && wait->tgid == slot->tgid && op < 32 &&
	    (WAKE_OPS >> op & 1) && ((__u32)THIRD_OF(regs) || !(REQUEUE_OPS >> op & 1)) &&
	    (__s64)(slot->start_ns - wait->start_ns) >= (__s64)FBT_LONG_NS)
		note_wake(wait, slot, index, op, THIRD_OF(regs));
}

/* The thread waited as for a lock: of glibc or Rust, or one with priority inheritance. */
static __always_inline bool is_lock_wait(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 op = SECOND_OF(regs) & OP_MASK;

	return op == LOCK_PI || op == LOCK_PI2 || (__u32)THIRD_OF(regs) == LOCK_WAITED_FOR;
}

static __always_inline void send_wake(struct fbt_slot *slot, __u64 address, __u64 start)
{
	struct fbt_wait *wait = wait_at(slot->tgid, address);
	struct fbt_ring_wake *wake;

	if (!wait || wait->address != address || wait->tgid != slot->tgid ||
	    wait->waker.wake_ns < start)
		return;
	wake = bpf_ringbuf_reserve(&events, sizeof(*wake), 0);
	if (!wake) {
		slot->lost_calls++;
		count_lost(FBT_LOST_CALLS);
		return;
	}
	wake->header.type = FBT_EVENT_WAKE;
	wake->header.flags = 0;
	wake->header.size = sizeof(*wake);
	wake->tgid = slot->tgid;
	wake->tid = slot->tid;
	wake->start_ns = start;
	wake->since_ns = slot->nr == NR_FUTEX && slot->call_gil ? slot->gil_since_ns : 0;
	if (__sync_lock_test_and_set(&wait->busy, 1)) {
		/* Another thread wakes this address now: it did not end this wait. */
		bpf_ringbuf_discard(wake, BPF_RB_NO_WAKEUP);
		return;
	}
	__builtin_memcpy(&wake->waker, &wait->waker, sizeof(wake->waker));
	wait->unread = 0;
	store_barrier();
	*(volatile __u32 *)&wait->busy = 0;
	if (slot->nr != NR_FUTEX || !is_lock_wait(bpf_get_current_task_btf()))
		wake->waker.flags &= ~FBT_WAKE_LOCK;
	bpf_ringbuf_submit(wake, BPF_RB_NO_WAKEUP);
}

/*
 * The wait for a CPU in a call. It was read at the entry of futex calls and in steps. Of other
 * calls the waits since the last long call are known: those before this call are the time between
 * the two, without the short calls, that the thread was not on a CPU.
 */
static __always_inline __u64 delay_in_call(struct fbt_slot *slot, struct fbt_past *past,
					   const struct fbt_past_call *call, __u64 start)
{
	struct fbt_past_call *last = &past->calls[(past->count - 1) % FBT_PAST_CALLS];
	__u64 delay = call->delay_ns - last->delay_ns;
	__u64 before = start - last->end_ns;
	__u64 not_waited = call->busy_ns - call->duration_ns - last->busy_ns;

	if (slot->step_start_ns || call->nr == NR_FUTEX)
		return call->delay_ns - slot->call_delay_ns;
	if (!past->count)
		return 0;
	not_waited += call->cpu_ns - last->cpu_ns;
	before = before > not_waited ? before - not_waited : 0;
	return delay > before ? delay - before : 0;
}

/* The history of a slot's thread, emptied if it is another's. */
static __always_inline struct fbt_past *past_of(struct fbt_slot *slot, __u32 index)
{
	struct fbt_past *past = bpf_map_lookup_elem(&pasts, &index);

	if (past && past->tid != slot->tid) {
		past->tid = slot->tid;
		past->count = 0;
	}
	return past;
}

static __always_inline void add_past_call(struct fbt_past *past, const struct fbt_past_call *call)
{
	past->calls[past->count % FBT_PAST_CALLS] = *call;
	past->count++;
}

static __always_inline void read_past_call(struct fbt_past_call *call, struct fbt_slot *slot,
					   __u64 start, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();

	call->end_ns = now;
	call->duration_ns = now - start;
	call->busy_ns = fbt_busy_ns(slot->busy, now);
	call->delay_ns = run_delay_of(task);
	call->cpu_ns = cpu_clock(task, now);
	call->call_delay_ns = 0;
	call->nr = slot->nr;
	call->switches = task->nvcsw;
	call->faults = task->maj_flt;
	call->minor_faults = task->min_flt;
	call->is_idle =
		(slot->nr == NR_FUTEX && !is_lock_wait(task)) || slot->nr == NR_RESTART_SYSCALL;
}

/*
 * The end of a call whose entry was not seen: the thread was created, or tracing of it began, in
 * this call. A new thread ends its clone so, after it has waited for its first CPU.
 */
__noinline int leave_unseen_call(struct fbt_slot *slot, __u32 index, __u64 now)
{
	struct fbt_past *past = bpf_map_lookup_elem(&pasts, &index);
	struct fbt_past_call call;

	if (!slot)
		return 0;
	if (slot->born_ns == ~0ull)
		slot->born_ns = now;
	/* The calls of the kernel's own probes end so too, again and again. */
	if (call_detail < FBT_DETAIL_ESCALATED || !past || past->tid == slot->tid)
		return 0;
	past->tid = slot->tid;
	past->count = 0;
	read_past_call(&call, slot, now, now);
	if (slot->born_ns < now && now - slot->born_ns >= call.delay_ns && call.delay_ns <= ~0u) {
		call.duration_ns = call.delay_ns;
		call.call_delay_ns = call.delay_ns;
		call.busy_ns += call.delay_ns;
	}
	add_past_call(past, &call);
	return 0;
}

/* At the end of a futex call in a step. */
static __always_inline void leave_wait(struct fbt_slot *slot)
{
	if (!(slot->call_flags & FBT_CALL_NOTED))
		return;
	__sync_fetch_and_sub(&open_waits.count, 1);
	slot->call_flags &= ~FBT_CALL_NOTED;
}

/* The step has waited for something to read. */
static __always_inline bool is_answered(__u32 nr)
{
	return nr < FBT_NR_COUNT && (traits[nr] & FBT_FD_WAITS);
}

static __always_inline struct fbt_answered *answered_of(__u32 tgid)
{
	__u32 place = tgid % FBT_ANSWERED;

	return bpf_map_lookup_elem(&answered, &place);
}

/* Steps have waited so: until then writers have nothing to look for. */
static volatile __u32 answers_wanted;

/* The step has waited for long: from now on its answers are looked for. */
static __always_inline void want_answers(struct fbt_slot *slot, __u32 index)
{
	struct fbt_answered *to = answered_of(slot->tgid);

	if (!to)
		return;
	if (to->tgid != slot->tgid) {
		__builtin_memset(to, 0, sizeof(*to));
		to->tgid = slot->tgid;
	}
	for (int i = 0; i < FBT_ANSWERED_SLOTS; i++) {
		if (to->slot[i] == index)
			return;
	}
	to->slot[to->next++ % FBT_ANSWERED_SLOTS] = index;
	answers_wanted = 1;
}

static __always_inline void send_answer(struct fbt_slot *slot, __u32 index, __u64 start)
{
	if (answers_wanted)
		send_wake(slot, answer_address(index), start);
	want_answers(slot, index);
}

/* Not inlined: few calls are long. Called when slot->busy has the call. */
__noinline int leave_long_call(struct fbt_slot *slot, __u32 index, __u64 start, __u64 now)
{
	struct fbt_past *past = slot ? past_of(slot, index) : NULL;
	struct fbt_past_call call;
	__u64 inside;

	if (!slot || !past)
		return 0;
	if (slot->step_start_ns && slot->nr == NR_FUTEX && slot->call_flags)
		send_wake(slot, slot->call_args[0], start);
	else if (slot->step_start_ns && is_answered(slot->nr) && slot->call_flags)
		send_answer(slot, index, start);
	if (slot->step_start_ns && now - start >= FBT_LIMIT_MIN_NS)
		copy_slow_call(slot, start, now);
	read_past_call(&call, slot, start, now);
	inside = delay_in_call(slot, past, &call, start);
	if (inside > call.duration_ns)
		inside = call.duration_ns;
	call.call_delay_ns = inside < ~0u ? inside : ~0u;
	add_past_call(past, &call);
	return 0;
}

#endif
