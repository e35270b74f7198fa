/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a CPython interpreter keeps its threads from: waits for its global lock (GIL), which are
 * futex waits at addresses in its own data, and garbage collections, whose begin and end are
 * probed. Both are summed up in the thread's slot, in steps and outside.
 */
#ifndef FBT_STALLS_BPF_H
#define FBT_STALLS_BPF_H

#include <bpf/bpf_tracing.h>
#include "frames.bpf.h"
#include "handlers.bpf.h"
#include "wakes.bpf.h"

/* There are interpreters in the map runtimes: until then no call is looked at. */
volatile __u32 has_runtimes = 0;

/* Between two calls of one wait: the interpreter looks only whether it has the lock by now. */
#define GIL_AGAIN_NS  1000000
#define GIL_TIMED_OUT (-110)

static __always_inline void enter_gil(struct fbt_slot *slot, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 address = FIRST_OF(regs);
	__u32 tgid = slot->tgid;
	struct fbt_runtime *runtime = bpf_map_lookup_elem(&runtimes, &tgid);

	slot->call_gil = runtime && address >= runtime->start && address < runtime->end &&
			 is_wait(SECOND_OF(regs));
	if (slot->call_gil &&
	    (!slot->gil_again || slot->start_ns - slot->gil_end_ns > GIL_AGAIN_NS))
		slot->gil_since_ns = slot->start_ns;
}

/*
 * Called at the entry of a futex call that has_news(), after enter_call(), when slot->start_ns is
 * set. Not inlined: most calls of futex do not wait, and wake nobody whose wait is noted.
 */
__noinline int enter_futex(struct fbt_slot *slot, __u32 index)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!slot)
		return 0;
	if (has_runtimes)
		enter_gil(slot, task);
	if (call_detail >= FBT_DETAIL_ESCALATED)
		look_for_waits(slot, task, index);
	return 0;
}

static __always_inline bool has_news(const struct fbt_slot *slot)
{
	if (has_runtimes)
		return true;
	return call_detail >= FBT_DETAIL_ESCALATED && (open_waits.count || is_wait_of_step(slot));
}

/* Called when a wait for the GIL returns; delay: of its duration, waiting for a CPU. */
__noinline int leave_gil(struct fbt_slot *slot, __u64 now, long ret, __u64 duration, __u64 delay)
{
	if (!slot)
		return 0;
	slot->gil_end_ns = now;
	slot->gil_again = ret == GIL_TIMED_OUT;
	slot->stalls.gil_ns += duration > delay ? duration - delay : 0;
	slot->stalls.gil_waits++;
	slot->call_gil = 0;
	return 0;
}

#ifdef __TARGET_ARCH_x86
/* Only constant offsets into the context are allowed, so all registers are read. */
static __always_inline __u64 read_register(struct pt_regs *ctx, __u32 number)
{
	volatile __u64 registers[16] = {ctx->ax,  ctx->dx,  ctx->cx,  ctx->bx, ctx->si,	 ctx->di,
					ctx->bp,  ctx->sp,  ctx->r8,  ctx->r9, ctx->r10, ctx->r11,
					ctx->r12, ctx->r13, ctx->r14, ctx->r15};

	return registers[number & 15];
}
#else
/* The loader names no register there but FBT_GC_SECOND. */
static __always_inline __u64 read_register(struct pt_regs *ctx, __u32 number)
{
	return 0;
}
#endif

static __always_inline __u32 read_generation(struct pt_regs *ctx, __u64 cookie)
{
	__u32 where = cookie & FBT_PROBE_KIND, generation = ~0u;

	if (where == FBT_GC_SECOND)
		generation = PT_REGS_PARM2(ctx);
	else if (where >= FBT_GC_REGISTERS && !(cookie & FBT_PROBE_GC_MEMORY))
		generation = (__u32)read_register(ctx, where - FBT_GC_REGISTERS);
	else if (where >= FBT_GC_REGISTERS &&
		 bpf_probe_read_user(&generation, sizeof(generation),
				     (void *)(read_register(ctx, where - FBT_GC_REGISTERS) +
					      ((__s64)cookie >> FBT_PROBE_SP_SHIFT))))
		generation = ~0u;
	return generation < FBT_GENERATION_UNKNOWN ? generation : FBT_GENERATION_UNKNOWN;
}

static __always_inline void begin_gc(struct fbt_slot *slot, struct pt_regs *ctx, __u64 cookie)
{
	__u64 sp = cookie & FBT_PROBE_NO_SP ? ~0ull : entry_sp(ctx, cookie);

	/* A finalizer asks for another collection, which the interpreter refuses. */
	if (slot->gc_start_ns && sp < slot->gc_sp && sp != ~0ull && slot->gc_sp != ~0ull)
		return;
	slot->gc_sp = sp;
	slot->gc_generation = read_generation(ctx, cookie);
	slot->gc_own_ns = slot->step_start_ns ? own_clock(slot, bpf_get_current_task_btf()) : 0;
	slot->gc_start_ns = bpf_ktime_get_ns();
}

static __always_inline void end_gc(struct fbt_slot *slot, struct pt_regs *ctx, __u64 cookie)
{
	__u64 start = slot->gc_start_ns, now = bpf_ktime_get_ns(), own, longest;

	if (!start || (!(cookie & FBT_PROBE_NO_SP) && PT_REGS_SP(ctx) < slot->gc_sp))
		return;
	slot->gc_start_ns = 0;
	slot->gc_begin_ns = start;
	slot->gc_end_ns = now;
	slot->stalls.gc_ns += now - start;
	slot->stalls.gc_count++;
	longest = (now - start) << FBT_GC_SHIFT | slot->gc_generation;
	if (longest > slot->gc_longest)
		slot->gc_longest = longest;
	if (!slot->step_start_ns || start < slot->step_start_ns)
		return;
	own = own_clock(slot, bpf_get_current_task_btf()) - slot->gc_own_ns;
	if (!(slot->step_flags & FBT_STEP_CPU_KNOWN) || (__s64)own > (__s64)(now - start))
		own = now - start;
	/* The kernel takes back what its host had of the CPU at the next tick. */
	if ((__s64)own > 0)
		slot->stalls.gc_own_ns += own;
}

/*
 * Not inlined, so that its registers are not on the stack of handle_step when that calls others:
 * older kernels allow 512 bytes in all. Static, because a global function cannot be given the
 * context.
 */
static __noinline int pass_gc(struct pt_regs *ctx, __u64 cookie)
{
	struct fbt_hits *hits;
	__u32 index, cpu = bpf_get_smp_processor_id();
	struct fbt_slot *slot = current_slot(&index);

	/* Kind 0 has no probes of its own. */
	hits = bpf_map_lookup_elem(&step_hits, &cpu);
	if (hits && cookie & FBT_PROBE_END)
		__sync_fetch_and_add(&hits->ends[0], 1);
	if (!slot)
		return 0;
	if (cookie & FBT_PROBE_END)
		end_gc(slot, ctx, cookie);
	else
		begin_gc(slot, ctx, cookie);
	return 0;
}

/* A step begins. */
static __always_inline void begin_stalls(struct fbt_slot *slot)
{
	slot->step_stalls = slot->stalls;
	slot->gc_longest = 0;
}

static __always_inline void fill_stalls(struct fbt_stalls *stalls, const struct fbt_slot *slot,
					__u64 start)
{
	const struct fbt_slot_stalls *now = &slot->stalls, *before = &slot->step_stalls;

	stalls->header.type = FBT_EVENT_STALLS;
	stalls->header.flags = 0;
	stalls->header.size = sizeof(*stalls);
	stalls->tgid = slot->tgid;
	stalls->tid = slot->tid;
	stalls->start_ns = start;
	stalls->gil_ns = now->gil_ns - before->gil_ns;
	stalls->gc_ns = now->gc_ns - before->gc_ns;
	stalls->gc_own_ns = now->gc_own_ns - before->gc_own_ns;
	stalls->gc_longest_ns = slot->gc_longest >> FBT_GC_SHIFT;
	stalls->gil_waits = now->gil_waits - before->gil_waits;
	stalls->gc_count = now->gc_count - before->gc_count;
	stalls->gc_generation = slot->gc_longest & ((1u << FBT_GC_SHIFT) - 1);
	stalls->reserved = 0;
}

#endif
