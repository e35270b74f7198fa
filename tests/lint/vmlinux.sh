#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# vmlinux.h is enough for libbpf's BPF headers on both architectures.
set -u
cd "$(dirname "$0")/../.." || exit 1

status=0
for arch in x86 arm64; do
	if clang -target bpf -mcpu=v3 -D__TARGET_ARCH_$arch -O2 -g -Wall -Wextra -Wno-unused-parameter \
		-Werror -Ivmlinux -x c -c -o /dev/null - <<-'END'; then
		#include "vmlinux.h"
		#include <bpf/bpf_helpers.h>
		#include <bpf/bpf_tracing.h>
		#include <bpf/bpf_core_read.h>
		char LICENSE[] SEC("license") = "Dual BSD/GPL";
		__u64 seen;
		SEC("uprobe")
		int handle_probe(struct pt_regs *ctx)
		{
			seen = PT_REGS_SP(ctx) + PT_REGS_PARM1(ctx) + PT_REGS_IP(ctx);
			return 0;
		}
		SEC("tp_btf/sched_process_fork")
		int BPF_PROG(handle_fork, struct task_struct *parent, struct task_struct *child)
		{
			seen = parent->tgid + BPF_CORE_READ(child, pid);
			return 0;
		}
	END
		echo "ok - vmlinux.h serves libbpf's headers on $arch"
	else
		echo "not ok - vmlinux.h serves libbpf's headers on $arch"
		status=1
	fi
done
exit $status
