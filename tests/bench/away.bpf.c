/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How long a thread is away from its system call when it is sent through the stub: from the first
 * call of the stub to the call that it was in, issued again. Seen from outside: the stub itself
 * measures nothing.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define RT_SIGPROCMASK 14
#define ROUNDS_MAX     4096

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u32 tid;
__u64 call; /* the one the thread waits in */
__u64 begin_ns;
__u64 away_ns[ROUNDS_MAX];
__u32 rounds;

SEC("tp_btf/sys_enter")
int BPF_PROG(handle_sys_enter, struct pt_regs *regs, long id)
{
	if ((__u32)bpf_get_current_pid_tgid() != tid)
		return 0;
	if (id == RT_SIGPROCMASK && !begin_ns)
		begin_ns = bpf_ktime_get_ns();
	if ((id == 219 || (__u64)id == call) && begin_ns) {
		away_ns[rounds++ % ROUNDS_MAX] = bpf_ktime_get_ns() - begin_ns;
		begin_ns = 0;
	}
	return 0;
}
