/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which call of a function is meant, by its stack pointer and its return address. */
#ifndef FBT_FRAMES_BPF_H
#define FBT_FRAMES_BPF_H

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "fbt_shared.h"

/* The stack pointer at the function's entry: see FBT_PROBE_SP_SHIFT. */
static __always_inline __u64 entry_sp(struct pt_regs *ctx, __u64 cookie)
{
	return PT_REGS_SP(ctx) - ((__s64)cookie >> FBT_PROBE_SP_SHIFT);
}

#ifdef __TARGET_ARCH_x86
/* Frames of the thread that are searched; most have no uretprobe at all. */
#define HIJACKED_MAX 4

/*
 * A uretprobe of another tool has replaced the return address at sp; the kernel has kept it. 0 if
 * there is none.
 */
static __always_inline __u64 hijacked_return(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *instance = task->utask ? task->utask->return_instances : NULL;

	for (int i = 0; i < HIJACKED_MAX && instance; i++) {
		if (instance->stack == sp)
			return instance->orig_ret_vaddr;
		instance = instance->next;
	}
	return 0;
}

/*
 * The return address, which stays at sp as long as the function's frame exists. 0 if not known, as
 * with a uretprobe, which replaces the return address.
 */
static __always_inline __u64 read_return(struct pt_regs *ctx, __u64 sp, __u64 cookie)
{
	__u64 address = 0;

	if (cookie & (FBT_PROBE_NO_SP | FBT_PROBE_RETURN))
		return 0;
	address = hijacked_return(sp);
	if (!address && bpf_probe_read_user(&address, sizeof(address), (void *)sp))
		address = 0;
	return address;
}

/*
 * Whether the function with that stack pointer at its entry was unwound: its return address, which
 * read_return() had given, has been overwritten.
 */
static __always_inline bool is_frame_left(struct pt_regs *ctx, __u64 entry_sp, __u64 was)
{
	__u64 address = was ? read_return(ctx, entry_sp, 0) : 0;

	return address && address != was;
}

/* Where the function returns to; 0 if that is not known. back: what read_return() has given. */
static __always_inline __u64 site_of(struct pt_regs *ctx, __u64 back, __u64 cookie)
{
	return back;
}

/*
 * The same of a call that is not traced. Where its stack cannot be read it is gone: this would hide
 * all later steps of a thread otherwise, while a wrong answer lets one step begin too early.
 */
static __always_inline bool may_be_left(struct pt_regs *ctx, __u64 entry_sp, __u64 was)
{
	return was && read_return(ctx, entry_sp, 0) != was;
}

/* Whether the function returns to where a function with tail calls does. was, back: as above. */
static __always_inline bool returns_with(struct pt_regs *ctx, __u64 was, __u64 back, __u64 cookie)
{
	return back == was;
}
#else
/* Maximum number of frames searched between an open call and another begin. */
#define FRAMES_MAX	32

/*
 * A frame record. x29 points to the newest one, and each points to that of its caller (AAPCS64,
 * 6.4.6).
 */
struct frame_record {
	__u64 next;
	__u64 address;
};

/* Bits 48 and up may be a signature (pointer authentication). */
static __always_inline __u64 unsigned_address(__u64 address)
{
	return address & 0xffffffffffffull;
}

/* Bits 0 and 1 are 0, as both are aligned. */
static __always_inline __u64 frame_key(__u64 next, __u64 address)
{
	return (next << 16) ^ unsigned_address(address);
}

/* Where the function returns to; 0 if that is not known. */
static __always_inline __u64 site_of(struct pt_regs *ctx, __u64 back, __u64 cookie)
{
	const volatile struct user_pt_regs *regs = (void *)ctx;

	if (cookie & (FBT_PROBE_NO_SP | FBT_PROBE_RETURN))
		return 0;
	return unsigned_address(regs->regs[30]);
}

/* In a key: the function itself may store no such record. But a function that it jumps to may. */
#define MAY_BE_UNSTORED 1

/*
 * Key of the frame record that the function is about to store; with tail calls, also if it may
 * store none. 0 if not known. Like the functions below, it is not inlined, as the stack of
 * handle_step has no room for its registers.
 */
static __noinline __u64 read_return(struct pt_regs *ctx, __u64 sp, __u64 cookie)
{
	const volatile struct user_pt_regs *regs = (void *)ctx;
	__u64 key = frame_key(regs->regs[29], regs->regs[30]);

	if (cookie & (FBT_PROBE_NO_SP | FBT_PROBE_RETURN))
		return 0;
	if (cookie & FBT_PROBE_FRAME)
		return key;
	return cookie & FBT_PROBE_TAILS ? key | MAY_BE_UNSTORED : 0;
}

/* Whether the function returns to where a function with tail calls does. was: as above. */
static __noinline bool returns_with(struct pt_regs *ctx, __u64 was, __u64 back, __u64 cookie)
{
	const volatile struct user_pt_regs *regs = (void *)ctx;

	/* Before it jumps, a function restores both registers. */
	return !(cookie & (FBT_PROBE_NO_SP | FBT_PROBE_RETURN)) &&
	       frame_key(regs->regs[29], regs->regs[30]) == (was & ~(__u64)MAY_BE_UNSTORED);
}

/*
 * Whether the chain of frame records from at, the newest one, reaches beyond entry_sp and does not
 * contain the one with the key was. A function of its own: where it is inlined, the verifier walks
 * the loop again for each state in which it is reached, and Linux 6.12 gave up over that.
 */
__noinline int is_record_gone(__u64 at, __u64 sp, __u64 entry_sp, __u64 was)
{
	struct frame_record record;

	for (int i = 0; i < FRAMES_MAX; i++) {
		if (at < sp || (at & 7) || bpf_probe_read_user(&record, sizeof(record), (void *)at))
			return 0;
		/* In the last record of a thread next is 0. */
		if (record.next && record.next <= at)
			return 0;
		if (at >= entry_sp)
			return record.address && !(record.address & 3);
		if (frame_key(record.next, record.address) == was)
			return 0;
		at = record.next;
	}
	return 0;
}

/*
 * Whether the function with that stack pointer at its entry was unwound: its record, whose key
 * read_return() had given, is no longer there.
 */
static __always_inline bool is_frame_left(struct pt_regs *ctx, __u64 entry_sp, __u64 was)
{
	const volatile struct user_pt_regs *regs = (void *)ctx;

	return was && !(was & MAY_BE_UNSTORED) &&
	       is_record_gone(regs->regs[29], regs->sp, entry_sp, was);
}

/*
 * The same of a function with tail calls, which may have jumped to one that stores the record. If
 * none has stored it, it counts as left.
 */
static __noinline bool may_be_left(struct pt_regs *ctx, __u64 entry_sp, __u64 was)
{
	const volatile struct user_pt_regs *regs = (void *)ctx;

	return was &&
	       is_record_gone(regs->regs[29], regs->sp, entry_sp, was & ~(__u64)MAY_BE_UNSTORED);
}
#endif

#endif
