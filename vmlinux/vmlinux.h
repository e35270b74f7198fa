/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The kernel types and constants that bpf/ touches, and no others. Structs are CO-RE: only their
 * field names count, the loader finds the offsets in the running kernel's BTF.
 * tests/lint/vmlinux.sh compiles this file for both architectures, tests/live/vmlinux.sh holds it
 * against a real kernel.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef int pid_t;
typedef _Bool bool;

enum {
	false = 0,
	true = 1,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

/* Anonymous in the kernel too. */
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_MMAPABLE = 1024,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
};

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

struct thread_info {
#ifdef __TARGET_ARCH_x86
	u32 status;
#else
	unsigned long flags;
	struct {
		u32 count;
	} preempt;
#endif
};

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_queued;
};

typedef struct {
	int counter;
} atomic_t;

struct qspinlock {
	union {
		atomic_t val;
	};
};

struct raw_spinlock {
	struct qspinlock raw_lock;
};

struct rq {
	struct raw_spinlock __lock;
	u64 clock;
	u64 clock_task;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	u64 exec_start;
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_rdev;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct qstr {
	u64 hash_len;
	const unsigned char *name;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	const void *f_op;
	void *private_data;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
};

/* A function that a uretprobe waits for, the newest first. */
struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

typedef struct {
	s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;
typedef s64 ktime_t;

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

struct cfs_bandwidth {
	ktime_t period;
	u64 quota;
	int nr_throttled;
	u64 throttled_time;
};

struct task_group {
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
};

enum memcg_memory_event {
	MEMCG_HIGH = 1,
	MEMCG_MAX = 2,
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
	atomic_long_t memory_events_local[MEMCG_MAX + 1];
};

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

struct wait_queue_head {
	struct list_head head;
};

typedef struct wait_queue_head wait_queue_head_t;

struct wait_queue_entry {
	struct list_head entry;
};

typedef struct wait_queue_entry wait_queue_entry_t;

struct pipe_inode_info {
	wait_queue_head_t rd_wait;
};

struct eventfd_ctx {
	wait_queue_head_t wqh;
};

struct socket_wq {
	wait_queue_head_t wait;
};

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
	struct socket_wq *sk_wq;
};

struct socket {
	struct sock *sk;
};

struct unix_sock {
	struct sock sk;
	struct sock *peer;
};

struct eventpoll;

struct epitem {
	struct eventpoll *ep;
};

/* An epoll's entry in the queue of a file that it watches. */
struct eppoll_entry {
	struct epitem *base;
	wait_queue_entry_t wait;
	wait_queue_head_t *whead;
};

struct signal_struct {
	struct list_head thread_head;
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct file *vm_file;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	int on_cpu;
	struct sched_entity se;
	struct sched_info sched_info;
	pid_t pid;
	pid_t tgid;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	__u64 start_time;
	struct sighand_struct *sighand;
	unsigned int flags;
	int static_prio;
	struct list_head thread_node;
	struct pid *thread_pid;
	struct signal_struct *signal;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned long min_flt;
	unsigned long maj_flt;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct uprobe_task *utask;
	struct css_set *cgroups;
	struct task_group *sched_task_group;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

/* What a program of an iterator over threads gets. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#if defined(__TARGET_ARCH_x86)

struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

#elif defined(__TARGET_ARCH_arm64)

struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

struct pt_regs {
	struct user_pt_regs user_regs;
	u64 orig_x0;
	s32 syscallno;
};

#else
#error "vmlinux.h: only x86-64 and arm64 are known"
#endif

/* What a program of a perf event gets. */
struct bpf_perf_event_data {
#if defined(__TARGET_ARCH_x86)
	struct pt_regs regs;
#else
	struct user_pt_regs regs;
#endif
	__u64 sample_period;
	__u64 addr;
};

#pragma clang attribute pop

#endif
