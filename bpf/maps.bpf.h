/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Maps and knobs. Sizes that depend on the machine are set by the loader before loading. */
#ifndef FBT_MAPS_BPF_H
#define FBT_MAPS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "fbt_shared.h"

/* Knobs: defaults take the longest path, so that the verifier proves what users may switch on. */
const volatile __u32 call_detail = FBT_DETAIL_ALL;
const volatile __u32 free_mask = 1023;
const volatile __u32 ring_mask = 1023;
const volatile __u32 ring_shift = 10;
const volatile __u32 self_tgid = 0;
const volatile __u8 trace_all = 1;
const volatile __u8 follow = 1;
const volatile __u8 category[FBT_NR_COUNT] = {};
const volatile __u8 descriptors[FBT_NR_COUNT] = {}; /* enum fbt_descriptor */

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

/* See struct fbt_control: threads found to be untraced, by their kernel stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FBT_STRANGERS);
	__type(key, __u32);
	__type(value, __u64);
} strangers SEC(".maps");

/* Per slot FBT_NR_COUNT sums, one for each syscall number. */
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

/* The processes of the slots, close together for the walk at each step: 0 if not live. */
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

/* Per CPU ring_mask + 1 places. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct fbt_ring_call);
} ring_calls SEC(".maps");

/* Per CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fbt_hits);
} step_hits SEC(".maps");

/*
 * Step records, fbt_target records without strings when a process appears or calls execve, and
 * fbt_ring_file records.
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

/* What makes two open files of a process the same to a reader of the outputs. */
struct file_key {
	__u64 ino;
	__u64 name;	  /* hash of name and folder; a rename makes another file of it */
	__u64 operations; /* tells apart what shares one anonymous inode */
	__u32 device;
	__u32 tgid;
	__u32 fd;
	__u32 deleted;
};

/* The ids of files that were announced. One that falls out is announced again when it is used. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct file_key);
	__type(value, __u32);
} known_files SEC(".maps");

/* From a file up to the root. */
struct path_walk {
	__u64 dentry;
	__u64 mount; /* struct vfsmount */
	__u64 root_dentry;
	__u64 root_mount;
	__u64 names;
	struct fbt_ring_file record;
};

/* Too large for a stack. Programs on syscall tracepoints are not preempted. */
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
