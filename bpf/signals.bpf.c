/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Who stops a process by a signal. Whoever sends one is the current task then; later nothing tells
 * it. Every signal of the machine comes by here, and all but five leave after two comparisons. An
 * object of its own: where the kernel refuses it, tracing works without.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "fbt_shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The same numbers on x86-64 and arm64. */
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTTOU 22
/* Instead of the address of a siginfo: the kernel itself sends the signal. */
#define SEND_SIG_PRIV 1
/* result, the last argument: the process ignores it, or has one that is pending. */
#define IS_DELIVERED 0

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_STOP_NOTES);
	__type(key, __u32);
	__type(value, struct fbt_stop_note);
} stop_notes SEC(".maps");

/* A handler that the process has for it; 0: none, so that it stops. */
static __always_inline __u64 handler_of(struct task_struct *target, __u32 number)
{
	struct sighand_struct *handlers = BPF_CORE_READ(target, sighand);
	__u64 at, handler = 0;

	if (!handlers)
		return 0;
	at = bpf_core_field_offset(struct sighand_struct, action) +
	     (number - 1) * bpf_core_type_size(struct k_sigaction) +
	     bpf_core_field_offset(struct k_sigaction, sa) +
	     bpf_core_field_offset(struct sigaction, sa_handler);
	bpf_probe_read_kernel(&handler, sizeof(handler), (void *)handlers + at);
	return handler;
}

static __always_inline __u32 origin_of(__u32 number, __u64 info)
{
	if (info != SEND_SIG_PRIV)
		return FBT_SENT_BY_PROCESS;
	if (number != SIGSTOP)
		return FBT_SENT_BY_TERMINAL;
	return FBT_SENT_BY_KERNEL;
}

static __always_inline void name_sender(struct fbt_stop_sender *sender, struct task_struct *target)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();

	sender->sender = BPF_CORE_READ(current, tgid);
	BPF_CORE_READ_INTO(&sender->comm, current, group_leader, comm);
	/* The kernel stops a thread for a tracer that attaches to it. */
	if (sender->origin == FBT_SENT_BY_KERNEL && sender->sender != sender->tgid)
		sender->origin = FBT_SENT_BY_TRACER;
	if (sender->origin != FBT_SENT_BY_PROCESS && sender->origin != FBT_SENT_BY_TRACER) {
		sender->sender = 0;
		__builtin_memset(sender->comm, 0, sizeof(sender->comm));
		return;
	}
	sender->parent = BPF_CORE_READ(current, real_parent, tgid);
	BPF_CORE_READ_INTO(&sender->parent_comm, current, real_parent, group_leader, comm);
}

/*
 * A process that is stopped already is not stopped by a second signal. But one that is no SIGSTOP
 * may not have stopped it: it may block that. After that of a tracer a process goes on without a
 * SIGCONT.
 */
static __always_inline bool is_stopped_already(const struct fbt_stop_note *note,
					       const struct fbt_stop_sender *sender, __u64 born_ns)
{
	return note->sender.tgid == sender->tgid && note->born_ns == born_ns && !note->ended_ns &&
	       note->sender.origin != FBT_SENT_BY_TRACER &&
	       (note->sender.number == SIGSTOP || sender->number != SIGSTOP);
}

SEC("raw_tp/signal_generate")
int note_stop(__u64 *ctx)
{
	__u32 number = ctx[0], key, changes;
	struct task_struct *target = (struct task_struct *)ctx[2];
	struct fbt_stop_sender sender = {};
	struct fbt_stop_note *note;
	__u64 born_ns;

	if (number < SIGCONT || number > SIGTTOU)
		return 0;
	sender.tgid = BPF_CORE_READ(target, tgid);
	key = sender.tgid % FBT_STOP_NOTES;
	note = bpf_map_lookup_elem(&stop_notes, &key);
	if (!note)
		return 0;
	sender.time_ns = bpf_ktime_get_ns();
	if (number == SIGCONT) {
		if (note->sender.tgid == sender.tgid && !note->ended_ns)
			note->ended_ns = sender.time_ns;
		return 0;
	}
	if ((__u32)ctx[4] != IS_DELIVERED || (number != SIGSTOP && handler_of(target, number)))
		return 0;
	sender.number = number;
	sender.origin = origin_of(number, ctx[1]);
	born_ns = BPF_CORE_READ(target, group_leader, start_time);
	if (is_stopped_already(note, &sender, born_ns))
		return 0;
	name_sender(&sender, target);
	/* Processes with the same place write it by turns. */
	changes = note->changes & ~1u;
	if (__sync_val_compare_and_swap(&note->changes, changes, changes + 1) != changes)
		return 0;
	note->born_ns = born_ns;
	note->ended_ns = 0;
	note->sender = sender;
	__sync_fetch_and_add(&note->changes, 1);
	return 0;
}
