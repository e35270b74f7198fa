/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Counts and times the calls of candidate step functions, for --list-steps. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "fbt_shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Filtered here, because before Linux 6.10 a link fires in every process that maps the file. */
const volatile __u32 target_tgid = 0;

struct open_call {
	__u32 tid;
	__u32 kind;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct open_call);
	__type(value, __u64);
} open_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_KIND_COUNT);
	__type(key, __u32);
	__type(value, struct fbt_rate);
} rates SEC(".maps");

SEC("uprobe")
int handle_rate(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u64 now = bpf_ktime_get_ns();
	struct open_call call = {
		.tid = (__u32)bpf_get_current_pid_tgid(),
		.kind = cookie & FBT_PROBE_KIND,
	};
	struct fbt_rate *rate = bpf_map_lookup_elem(&rates, &call.kind);
	__u64 *start;

	if (!rate || bpf_get_current_pid_tgid() >> 32 != target_tgid)
		return 0;
	if (!(cookie & FBT_PROBE_END)) {
		__sync_fetch_and_add(&rate->begun, 1);
		bpf_map_update_elem(&open_calls, &call, &now, BPF_ANY);
		return 0;
	}
	start = bpf_map_lookup_elem(&open_calls, &call);
	if (!start)
		return 0;
	__sync_fetch_and_add(&rate->total_ns, now - *start);
	__sync_fetch_and_add(&rate->ended, 1);
	bpf_map_delete_elem(&open_calls, &call);
	return 0;
}
