/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Maps and constants of the programs. Before it loads them, the loader sets the constants and the
 * map sizes that depend on the machine.
 */
#ifndef FBT_MAPS_BPF_H
#define FBT_MAPS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "fbt_shared.h"

/*
 * Constants, set by the loader. The defaults select the longest code path, so that the verifier
 * sees all that options can enable.
 */
const volatile __u32 call_detail = FBT_DETAIL_ALL;
const volatile __u32 free_mask = 1023;
const volatile __u32 ring_mask = 1023;
const volatile __u32 ring_shift = 10;
const volatile __u32 self_tgid = 0;
const volatile __u8 trace_all = 1;
const volatile __u8 follow = 1;
/* By number: enum fbt_descriptor, enum fbt_trait, and the category << FBT_CATEGORY_SHIFT. */
const volatile __u16 traits[FBT_NR_COUNT] = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, struct fbt_ids);
} thread_ids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct fbt_slot);
} slots SEC(".maps");

/* Which thread has which kernel stack: see FBT_THREAD_STACKS. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_THREAD_STACKS);
	__type(key, __u32);
	__type(value, __u64);
} thread_stacks SEC(".maps");

/* FBT_NR_COUNT sums per slot, one for each syscall number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024 * FBT_NR_COUNT);
	__type(key, __u32);
	__type(value, struct fbt_sum);
} rows SEC(".maps");

struct fbt_slot_tgids {
	__u32 tgid[FBT_SLOTS_MAX];
};

/* tgid of each slot, 0 if it has no live thread. An array of its own, dense for walk_slots(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fbt_slot_tgids);
} slot_tgids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fbt_control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fbt_ring_heads);
} ring_heads SEC(".maps");

/* ring_mask + 1 places per CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct fbt_ring_call);
} ring_calls SEC(".maps");

/* One per CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fbt_hits);
} step_hits SEC(".maps");

/*
 * Records for the loader: fbt_ring_step; fbt_target without strings, when a process appears or
 * calls execve; fbt_ring_site; fbt_ring_wake; and fbt_ring_file.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* tgid */
	__type(value, struct fbt_target_state);
} targets SEC(".maps");

/* Processes whose interpreter is known. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FBT_RUNTIMES);
	__type(key, __u32); /* tgid */
	__type(value, struct fbt_runtime);
} runtimes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FBT_SITES_MAX);
	__type(key, struct fbt_site_key);
	__type(value, struct fbt_site);
} sites SEC(".maps");

/* Long futex waits of steps, by a hash of process and address: see struct fbt_wait. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FBT_WAITS);
	__type(key, __u32);
	__type(value, struct fbt_wait);
} waits SEC(".maps");

/* Threads whose steps wait for answers, by process: see bpf/answers.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FBT_ANSWERED);
	__type(key, __u32);
	__type(value, struct fbt_answered);
} answered SEC(".maps");

/* The latest long calls of each slot's thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct fbt_past);
} pasts SEC(".maps");

/* Stacks of slow calls, and how long calls may take: see bpf/stacks.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_STACK_PLACES);
	__type(key, __u32);
	__type(value, struct fbt_stack_place);
} stack_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_KIND_COUNT *FBT_LIMITS);
	__type(key, __u32);
	__type(value, __u32);
} call_limits SEC(".maps");

/* Threads whose page faults are counted by place: see bpf/fault_sites.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FBT_FAULT_THREADS);
	__type(key, __u32); /* tid */
	__type(value, struct fbt_fault_thread);
} fault_sums SEC(".maps");

/* Identity of an open file: files of a process with equal keys are one file in the outputs. */
struct file_key {
	__u64 ino;
	__u64 name;	  /* hash of name and directory, so a renamed file is a new file */
	__u64 operations; /* address of f_op; differs between kinds of anonymous inodes */
	__u32 device;
	__u32 tgid;
	__u32 fd;
	__u32 deleted;
};

/* The ids of announced files. An evicted file is announced again when it is next used. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct file_key);
	__type(value, __u32);
} known_files SEC(".maps");

/* State of a walk from a file up to the root directory. */
struct path_walk {
	__u32 busy; /* see path_walks */
	__u32 reserved;
	__u64 dentry;
	__u64 mount; /* struct vfsmount */
	__u64 root_dentry;
	__u64 root_mount;
	__u64 names;
	struct fbt_ring_file record;
};

/*
 * Here because a path_walk is too large for the stack. One per CPU is enough: before Linux 7, the
 * programs that use it are not preempted. Where another one is in the middle of it, a file has no
 * name until it is next used.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct path_walk);
} path_walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FBT_KIND_COUNT);
	__type(key, __u32);
	__type(value, struct fbt_kind_args);
} kind_args SEC(".maps");

#endif
