/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The cheapest pair of syscall probes there is, and with reads_clock the limit: a tracer that says
 * how long a call took has to read the clock at both ends, and can cost no less than that.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool reads_clock;

SEC("tp_btf/sys_enter")
int BPF_PROG(handle_sys_enter, struct pt_regs *regs, long id)
{
	if (reads_clock)
		bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(handle_sys_exit, struct pt_regs *regs, long ret)
{
	if (reads_clock)
		bpf_ktime_get_ns();
	return 0;
}

/* The cheapest probe of a step. */
SEC("uprobe")
int handle_probe(struct pt_regs *ctx)
{
	return 0;
}
