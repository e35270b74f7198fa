/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Who ended a long wait of a step that is no futex wait: the thread of its process that wrote to
 * the eventfd, pipe or Unix socket that the step reads, or waits for in poll or epoll.
 *
 * The writer looks for the waiter, so that waits cost nothing: only while a thread of its process,
 * whose steps have waited so before, has waited for long. The note is the one of a futex wait, at
 * an address that no futex has.
 */
#ifndef FBT_ANSWERS_BPF_H
#define FBT_ANSWERS_BPF_H

#include <bpf/bpf_core_read.h>
#include "wakes.bpf.h"

#define S_IFMT		    00170000
#define S_IFSOCK	    0140000
#define S_IFIFO		    0010000
#define ANON_INODE_FS_MAGIC 0x09041934
#define AF_UNIX		    1

/* Descriptors that are looked at of a poll, and waiters of a file. */
#define POLLED_MAX  8
#define WATCHED_MAX 8

#define has(type, field) bpf_core_field_exists(((struct type *)0)->field)

/* What a file's readers wait at; 0: nothing that a thread of the process could answer through. */
struct fbt_channel {
	__u64 object; /* the same for who reads and who writes */
	__u64 queue;  /* the kernel's queue of those that wait to read */
};

static __always_inline void find_socket(struct fbt_channel *channel, void *private, bool is_writer)
{
	struct socket *socket = private;
	struct sock *sk = BPF_CORE_READ(socket, sk);

	if (!has(unix_sock, peer) || BPF_CORE_READ(sk, __sk_common.skc_family) != AF_UNIX)
		return;
	if (is_writer)
		sk = BPF_CORE_READ((struct unix_sock *)sk, peer);
	channel->object = (__u64)sk;
	channel->queue =
		(__u64)BPF_CORE_READ(sk, sk_wq) + bpf_core_field_offset(struct socket_wq, wait);
}

/* Not inlined, so that the verifier checks it once. */
__noinline int find_channel(struct fbt_channel *channel, __u32 fd, bool is_writer)
{
	struct file *file = (struct file *)file_at(bpf_get_current_task_btf(), fd);
	struct inode *inode;
	void *private;
	__u32 type;

	if (!channel)
		return 0;
	channel->object = 0;
	channel->queue = 0;
	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	private = BPF_CORE_READ(file, private_data);
	type = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (type == S_IFSOCK) {
		find_socket(channel, private, is_writer);
	} else if (type == S_IFIFO) {
		channel->object = (__u64) private;
		channel->queue =
			(__u64) private + bpf_core_field_offset(struct pipe_inode_info, rd_wait);
	} else if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC) {
		/* Of these, only an eventfd is written to. */
		channel->object = (__u64) private;
		if (has(eventfd_ctx, wqh))
			channel->queue =
				(__u64) private + bpf_core_field_offset(struct eventfd_ctx, wqh);
	}
	return 0;
}

static __always_inline bool is_polled(struct fbt_slot *waiter, __u64 object)
{
	struct fbt_channel polled = {0};
	__u32 fd;

	for (__u32 i = 0; i < POLLED_MAX && i < waiter->call_args[1]; i++) {
		/* struct pollfd is of 8 bytes and begins with the descriptor. */
		if (bpf_probe_read_user(&fd, sizeof(fd), (void *)(waiter->call_args[0] + 8 * i)))
			return false;
		find_channel(&polled, fd, false);
		if (polled.object == object)
			return true;
	}
	return false;
}

/*
 * Whether an epoll watches the object: its entry is in the queue. Others are in there too, but an
 * entry of an epoll has the address of the queue just behind it.
 */
static __always_inline bool is_watched(struct fbt_slot *waiter, __u64 queue)
{
	struct file *file =
		(struct file *)file_at(bpf_get_current_task_btf(), waiter->call_args[0]);
	struct list_head *first, *node;
	__u64 epoll;

	if (!file || !queue || !has(eppoll_entry, whead) || !has(epitem, ep))
		return false;
	epoll = (__u64)BPF_CORE_READ(file, private_data);
	first = (void *)queue + bpf_core_field_offset(struct wait_queue_head, head);
	node = BPF_CORE_READ(first, next);
	for (int i = 0; i < WATCHED_MAX && node && node != first; i++) {
		struct eppoll_entry *entry = (void *)node -
					     bpf_core_field_offset(struct wait_queue_entry, entry) -
					     bpf_core_field_offset(struct eppoll_entry, wait);

		if ((__u64)BPF_CORE_READ(entry, whead) == queue &&
		    (__u64)BPF_CORE_READ(entry, base, ep) == epoll)
			return true;
		node = BPF_CORE_READ(node, next);
	}
	return false;
}

/* Whether what is written to fd is what the waiter waits for. Not inlined, as above. */
__noinline int is_answer(struct fbt_slot *waiter, __u32 fd)
{
	struct fbt_channel channel = {0}, read = {0};
	__u8 how;

	if (!waiter || waiter->nr >= FBT_NR_COUNT)
		return 0;
	how = traits[waiter->nr];
	if (!(how & FBT_FD_WAITS))
		return 0;
	find_channel(&channel, fd, true);
	if (!channel.object)
		return 0;
	if ((how & FBT_FD_WAITS) == FBT_FD_POLLS)
		return is_polled(waiter, channel.object);
	if ((how & FBT_FD_WAITS) == FBT_FD_EPOLLS)
		return is_watched(waiter, channel.queue);
	find_channel(&read, waiter->call_args[0], false);
	return read.object == channel.object;
}

/* The place is that of another wait, which is still open. */
static __always_inline bool is_place_taken(const struct fbt_wait *wait, __u64 address)
{
	__u32 other = wait->slot;
	struct fbt_slot *holder;

	if (!wait->start_ns || wait->address == address)
		return false;
	holder = bpf_map_lookup_elem(&slots, &other);
	return holder && holder->start_ns == wait->start_ns;
}

static __always_inline void note_answer(struct fbt_slot *slot, __u32 index, __u32 waiter_index,
					__u64 start)
{
	__u64 address = answer_address(waiter_index);
	struct fbt_wait *wait = wait_at(slot->tgid, address);

	if (!wait || is_place_taken(wait, address))
		return;
	wait->address = address;
	wait->tgid = slot->tgid;
	wait->slot = waiter_index;
	wait->unread = 0;
	/* The place may have been that of a wait for the GIL. */
	wait->since_ns = 0;
	wait->start_ns = start;
	if (!slot->step_start_ns)
		slot->call_delay_ns = run_delay_of(bpf_get_current_task_btf());
	note_wake(wait, slot, index, OP_ANSWER, 1);
}

/* Called at the entry of a call that writes, when slot->start_ns is set. */
__noinline int enter_write(struct fbt_slot *slot, __u32 index)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct fbt_answered *to;

	if (!slot)
		return 0;
	to = answered_of(slot->tgid);
	if (!to || to->tgid != slot->tgid)
		return 0;
	for (int i = 0; i < FBT_ANSWERED_SLOTS; i++) {
		__u32 other = to->slot[i];
		struct fbt_slot *waiter = other ? bpf_map_lookup_elem(&slots, &other) : NULL;
		__u64 start;

		if (!waiter || other == index || waiter->tgid != slot->tgid)
			continue;
		start = *(volatile __u64 *)&waiter->start_ns;
		if (start && waiter->step_start_ns &&
		    (__s64)(slot->start_ns - start) >= (__s64)FBT_LONG_NS &&
		    is_answer(waiter, FIRST_OF(regs)))
			note_answer(slot, index, other, start);
	}
	return 0;
}

#endif
