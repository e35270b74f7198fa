/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Stacks of the programs of uprobes. From Linux 6.13 on (x86-64; later on arm64) the kernel gives a
 * program of their type a stack that belongs to the CPU (bpf_enable_priv_stack), as if another
 * thread could not run the program there before the first one has ended. Of kprobes that is so. But
 * a uprobe may be preempted, and nothing keeps another thread's uprobe from running then: both
 * would use one stack, and the first goes on with the pointers of the second. Other tools have
 * brought kernels down so (open-telemetry/opentelemetry-ebpf-instrumentation, issue 3056).
 *
 * A program that contains a tail call has the thread's own stack, since stacks of a CPU do not go
 * with tail calls (the verifier's check_max_stack_depth). This one is in dead code: the verifier
 * sees it, and then removes it. tests/live/own_stack.sh looks at the machine code.
 */
#ifndef FBT_OWN_STACK_BPF_H
#define FBT_OWN_STACK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_programs SEC(".maps");

const volatile __u8 tail_calls = 0; /* always 0 */

/* To be called in each program of uprobes, and in nothing else. */
static __always_inline void use_own_stack(struct pt_regs *ctx)
{
	if (tail_calls)
		bpf_tail_call(ctx, &no_programs, 0);
}

#endif
