/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Counts and times the calls of candidate step functions, for --list-steps. Each thread has a stack
 * of the calls that are open, of each function the outermost one. It tells recursion from a new
 * call, which call a return ends, and which candidate calls which.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "fbt_shared.h"
#include "frames.bpf.h"
#include "own_stack.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Filtered here, because before Linux 6.10 a link fires in every process that maps the file. */
const volatile __u32 target_tgid = 0;

/* Calls inside of so many others are counted, but not timed. A power of two. */
#define DEPTH 8

/* open_call.flags */
#define CALL_TIMED 1 /* its end will be seen */
#define CALL_TAILS 2 /* the function may leave by a jump to another one */

struct open_call {
	__u64 sp;   /* the stack pointer at the function's entry */
	__u64 back; /* see read_return() */
	__u64 start_ns;
	__u64 delay_ns; /* how long its thread had waited for a CPU until then */
	__u32 kind;
	__u32 flags;
};

struct thread_calls {
	__u64 count;
	struct open_call open[DEPTH];
};

/* What a thread begins with: too large for the stack of a program. A type that the skeleton knows.
 */
const volatile __u64 no_calls[sizeof(struct thread_calls) / sizeof(__u64)] = {0};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct thread_calls);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_KIND_COUNT);
	__type(key, __u32);
	__type(value, struct fbt_rate);
} rates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_INSIDES);
	__type(key, __u32);
	__type(value, struct fbt_rate_inside);
} insides SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FBT_RATE_SITES);
	__type(key, __u64);
	__type(value, struct fbt_site);
} rate_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FBT_THREAD_RATES);
	__type(key, __u64);
	__type(value, struct fbt_thread_rate);
} thread_rates SEC(".maps");

/* Kernels without CONFIG_SCHED_INFO do not have the field. */
static __always_inline __u64 run_delay(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!bpf_core_field_exists(task->sched_info.run_delay))
		return 0;
	return BPF_CORE_READ(task, sched_info.run_delay);
}

static __always_inline struct thread_calls *calls_of_thread(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread_calls *calls = bpf_map_lookup_elem(&threads, &tid);

	if (calls)
		return calls;
	bpf_map_update_elem(&threads, &tid, (const void *)no_calls, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &tid);
}

/* The innermost open call, or NULL. */
static __always_inline struct open_call *top_of(struct thread_calls *calls)
{
	__u64 count = calls->count;

	return count ? &calls->open[(count - 1) & (DEPTH - 1)] : NULL;
}

/*
 * Whether the open call continues in the function that begins, after a jump to it. The frame tells.
 * It is the same after an exception too, if the caller then calls from the same place again: so a
 * function continues in itself only if it may jump to itself.
 */
static __always_inline bool continues(const struct open_call *call, struct pt_regs *ctx, __u64 back,
				      __u64 cookie)
{
	if (!(call->flags & CALL_TAILS) || !returns_with(ctx, call->back, back, cookie))
		return false;
	return call->kind != (cookie & FBT_PROBE_KIND) || (cookie & FBT_PROBE_SELF);
}

/* Removes calls that were left by an exception: control is above their frames. */
static __always_inline void drop_left(struct thread_calls *calls, struct pt_regs *ctx, __u64 sp,
				      __u64 back, __u64 cookie)
{
	for (int i = 0; i < DEPTH; i++) {
		struct open_call *top = top_of(calls);

		if (!top || (top->sp > sp && !may_be_left(ctx, top->sp, top->back)) ||
		    (top->sp == sp && continues(top, ctx, back, cookie)))
			return;
		calls->count--;
	}
}

/*
 * Whether the function that begins has an open call that contains this one. An open call with the
 * same frame was left by an exception, unless the function may jump to itself.
 */
static __always_inline bool is_inside_itself(struct thread_calls *calls, __u64 sp, __u64 cookie)
{
	for (__u64 i = 0; i < DEPTH; i++) {
		struct open_call *call = &calls->open[i & (DEPTH - 1)];

		if (i >= calls->count)
			return false;
		if (call->kind != (cookie & FBT_PROBE_KIND))
			continue;
		if (call->sp > sp || (cookie & FBT_PROBE_SELF))
			return true;
		calls->count = i;
		return false;
	}
	return false;
}

/*
 * Whether the place that the call returns to is probed. A new one is left in the map for the tool.
 */
static __always_inline bool is_site_probed(struct fbt_rate *rate, __u32 kind, __u64 address)
{
	struct fbt_site told = {.kinds = 1ull << (kind & 63), .state = FBT_SITE_TOLD};
	struct fbt_site *site = bpf_map_lookup_elem(&rate_sites, &address);

	if (site) {
		if (!(site->kinds & told.kinds))
			__sync_fetch_and_or(&site->kinds, told.kinds);
		return *(volatile __u32 *)&site->state == FBT_SITE_PROBED;
	}
	if (address && rate->sites < FBT_RATE_SITES_PER_KIND &&
	    !bpf_map_update_elem(&rate_sites, &address, &told, BPF_NOEXIST))
		__sync_fetch_and_add(&rate->sites, 1);
	return false;
}

static __always_inline int begin_call(struct pt_regs *ctx, __u64 cookie, struct fbt_rate *rate)
{
	__u64 sp = entry_sp(ctx, cookie), back = read_return(ctx, sp, cookie);
	struct thread_calls *calls = calls_of_thread();
	__u32 kind = cookie & FBT_PROBE_KIND;
	struct open_call *call;

	__sync_fetch_and_add(&rate->hits, 1);
	if (calls) {
		drop_left(calls, ctx, sp, back, cookie);
		if (is_inside_itself(calls, sp, cookie))
			return 0;
	}
	__sync_fetch_and_add(&rate->begun, 1);
	if (!calls || calls->count >= DEPTH)
		return 0;
	call = &calls->open[calls->count & (DEPTH - 1)];
	call->sp = sp;
	call->back = back;
	call->kind = kind;
	call->flags = CALL_TIMED;
	if (cookie & FBT_PROBE_TAILS)
		call->flags =
			CALL_TAILS |
			(is_site_probed(rate, kind, site_of(ctx, back, cookie)) ? CALL_TIMED : 0);
	calls->count++;
	call->delay_ns = run_delay();
	call->start_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void count_inside(struct thread_calls *calls, __u32 kind, __u64 ns)
{
	struct open_call *outer = top_of(calls);
	struct fbt_rate_inside *inside;
	__u32 key;

	if (!outer || !(outer->flags & CALL_TIMED))
		return;
	key = outer->kind * FBT_KIND_COUNT + kind;
	inside = bpf_map_lookup_elem(&insides, &key);
	if (!inside)
		return;
	__sync_fetch_and_add(&inside->ended, 1);
	__sync_fetch_and_add(&inside->total_ns, ns);
}

/* Only the thread itself writes its elements. */
static __always_inline void count_thread(__u32 tid, __u32 kind, __u64 ns)
{
	__u64 key = (__u64)kind << 32 | tid;
	struct fbt_thread_rate first = {.ended = 1, .total_ns = ns};
	struct fbt_thread_rate *rate = bpf_map_lookup_elem(&thread_rates, &key);

	if (rate) {
		rate->ended++;
		rate->total_ns += ns;
	} else {
		bpf_map_update_elem(&thread_rates, &key, &first, BPF_NOEXIST);
	}
}

/* The element of lasted for a duration. */
static __always_inline __u32 span_of(__u64 ns)
{
	__u32 span = 0;

	ns >>= FBT_RATE_FIRST_BITS;
	for (int bits = 16; bits; bits >>= 1) {
		if (ns >> bits) {
			ns >>= bits;
			span += bits;
		}
	}
	span += ns > 0;
	return span < FBT_RATE_SPANS ? span : FBT_RATE_SPANS - 1;
}

static __always_inline void count_ended(struct fbt_rate *rate, __u64 ns, __u64 delay_ns)
{
	__u64 active_ns = delay_ns < ns ? ns - delay_ns : 0;

	__sync_fetch_and_add(&rate->total_ns, ns);
	__sync_fetch_and_add(&rate->delay_ns, delay_ns);
	__sync_fetch_and_add(&rate->ended, 1);
	__sync_fetch_and_add(&rate->lasted[span_of(active_ns)], 1);
}

/*
 * Control leaves the frame at sp for its caller: the calls in it end, several if one has jumped to
 * the next. Those in frames below were left by an exception. Returns whether one has ended.
 */
static __always_inline bool end_calls(__u64 sp, __u64 now)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread_calls *calls = bpf_map_lookup_elem(&threads, &tid);
	__u64 delay_ns = run_delay();
	bool ended = false;

	for (int i = 0; calls && i < DEPTH; i++) {
		struct open_call *top = top_of(calls);
		struct fbt_rate *rate;
		__u32 kind;

		if (!top || top->sp > sp)
			break;
		kind = top->kind;
		rate = bpf_map_lookup_elem(&rates, &kind);
		calls->count--;
		if (!rate || top->sp != sp)
			continue;
		ended = true;
		if (!(top->flags & CALL_TIMED))
			continue;
		count_ended(rate, now - top->start_ns, delay_ns - top->delay_ns);
		count_thread(tid, kind, now - top->start_ns);
		count_inside(calls, kind, now - top->start_ns);
	}
	return ended;
}

SEC("uprobe")
int handle_rate(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns(), sp, cookie = bpf_get_attach_cookie(ctx);
	__u32 kind = cookie & FBT_PROBE_KIND;
	struct fbt_rate *rate = bpf_map_lookup_elem(&rates, &kind);

	use_own_stack(ctx);
	if (!rate || bpf_get_current_pid_tgid() >> 32 != target_tgid)
		return 0;
	if (!(cookie & FBT_PROBE_END))
		return begin_call(ctx, cookie, rate);
	sp = entry_sp(ctx, cookie);
#ifdef __TARGET_ARCH_x86
	/* The return address is off the stack. */
	if (cookie & FBT_PROBE_RETURN)
		sp -= sizeof(__u64);
#endif
	if (!end_calls(sp, now) && (cookie & FBT_PROBE_SITE))
		__sync_fetch_and_add(&rate->strangers, 1);
	return 0;
}
