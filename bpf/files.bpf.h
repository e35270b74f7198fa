/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds the id of the file of a descriptor. A new file is announced at once, with its path, because
 * later it may be closed and the descriptor may name another file.
 *
 * A thread caches the files of its step by descriptor and the addresses of file and inode. A cache
 * entry is wrong only if, during one step, another thread closes the file and opens another one
 * with the same descriptor and the same addresses.
 */
#ifndef FBT_FILES_BPF_H
#define FBT_FILES_BPF_H

#include "threads.bpf.h"

/*
 * One iteration of a path walk, like the kernel's prepend_path(): takes one name, or goes from the
 * root of a mount to its mount point. Returns 1 if the walk has ended. A global function, so that
 * the verifier checks it alone.
 */
__noinline int walk_up(struct path_walk *walk)
{
	struct vfsmount *mount;
	struct dentry *dentry, *parent;
	__u32 at;
	long length;

	if (!walk)
		return 1;
	mount = (struct vfsmount *)walk->mount;
	dentry = (struct dentry *)walk->dentry;
	at = walk->record.length;
	if (walk->dentry == walk->root_dentry && walk->mount == walk->root_mount)
		return 1;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == BPF_CORE_READ(mount, mnt_root)) {
		struct mount *here = (void *)mount - bpf_core_field_offset(struct mount, mnt);
		struct mount *outer = BPF_CORE_READ(here, mnt_parent);

		if (outer == here)
			return 1;
		walk->dentry = (__u64)BPF_CORE_READ(here, mnt_mountpoint);
		walk->mount = (__u64)outer + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	/*
	 * A dentry that is its own parent is a root that is mounted nowhere. As the first one it is
	 * a file without a directory, whose name is taken below.
	 */
	if (parent == dentry && at)
		return 1;
	if (at >= FBT_PATH_BYTES || walk->names++ >= FBT_PATH_NAMES) {
		walk->record.flags |= FBT_PATH_CUT;
		return 1;
	}
	length = bpf_probe_read_kernel_str(walk->record.names + at, FBT_NAME_BYTES,
					   BPF_CORE_READ(dentry, d_name.name));
	if (length <= 0) {
		walk->record.flags |= FBT_PATH_CUT;
		return 1;
	}
	walk->record.length = at + length;
	walk->dentry = (__u64)parent;
	if (parent != dentry)
		return 0;
	walk->record.flags |= FBT_PATH_FLOATING;
	return 1;
}

static __always_inline void walk_path(struct path_walk *walk)
{
	walk->names = 0;
	for (int i = 0; i < FBT_PATH_NAMES * 2; i++) {
		if (walk_up(walk))
			return;
	}
	walk->record.flags |= FBT_PATH_CUT;
}

/* Adds the path to walk->record and sends the record. Returns the file's id, or 0 if no room. */
__noinline int announce_file(struct path_walk *walk)
{
	struct fbt_control *c = bpf_map_lookup_elem(&control, &zero);
	__u32 size;

	if (!walk || !c)
		return 0;
	walk_path(walk);
	walk->record.file.header.type = FBT_EVENT_FILE;
	walk->record.file.header.flags = 0;
	walk->record.file.id = __sync_fetch_and_add(&c->files, 1) + 1;
	size = __builtin_offsetof(struct fbt_ring_file, names) + walk->record.length;
	size = (size + 7) & ~7u;
	if (size > sizeof(walk->record))
		return 0;
	walk->record.file.header.size = size;
	if (bpf_ringbuf_output(&events, &walk->record, size, BPF_RB_NO_WAKEUP)) {
		count_lost(FBT_LOST_FILES);
		return 0;
	}
	return walk->record.file.id;
}

static __always_inline int describe_file(const struct file_key *key, struct file *file,
					 struct inode *inode)
{
	struct path_walk *walk = bpf_map_lookup_elem(&path_walks, &zero);
	struct task_struct *task = bpf_get_current_task_btf();
	int id;

	if (!walk)
		return 0;
	if (__sync_lock_test_and_set(&walk->busy, 1)) {
		count_lost(FBT_LOST_FILES);
		return 0;
	}
	walk->dentry = (__u64)BPF_CORE_READ(file, f_path.dentry);
	walk->mount = (__u64)BPF_CORE_READ(file, f_path.mnt);
	walk->root_dentry = (__u64)BPF_CORE_READ(task, fs, root.dentry);
	walk->root_mount = (__u64)BPF_CORE_READ(task, fs, root.mnt);
	walk->record.file.tgid = key->tgid;
	walk->record.file.fd = key->fd;
	walk->record.file.mode = BPF_CORE_READ(inode, i_mode);
	walk->record.file.ino = key->ino;
	walk->record.file.device = key->device;
	walk->record.file.node_device = BPF_CORE_READ(inode, i_rdev);
	walk->record.magic = BPF_CORE_READ(inode, i_sb, s_magic);
	walk->record.flags = key->deleted ? FBT_PATH_DELETED : 0;
	walk->record.length = 0;
	id = announce_file(walk);
	*(volatile __u32 *)&walk->busy = 0;
	return id;
}

/*
 * Finds a file by its identity, announces it if it is new, and caches it for the step. Returns its
 * id, or 0.
 */
__noinline int find_file(struct fbt_slot *slot, __u64 address, __u32 fd)
{
	struct file *file = (struct file *)address;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct file_key key = {
		.ino = BPF_CORE_READ(inode, i_ino),
		.name = BPF_CORE_READ(dentry, d_name.hash_len),
		.operations = (__u64)BPF_CORE_READ(file, f_op),
		.device = BPF_CORE_READ(inode, i_sb, s_dev),
		.fd = fd,
		.deleted = !BPF_CORE_READ(dentry, d_hash.pprev) &&
			   BPF_CORE_READ(dentry, d_parent) != dentry,
	};
	struct fbt_slot_file *known;
	__u32 *found, id;

	if (!slot)
		return 0;
	key.tgid = slot->tgid;
	found = bpf_map_lookup_elem(&known_files, &key);
	id = found ? *found : describe_file(&key, file, inode);
	if (!id)
		return 0;
	if (!found)
		bpf_map_update_elem(&known_files, &key, &id, BPF_ANY);
	known = &slot->files[fd % FBT_SLOT_FILES];
	known->file = address;
	known->inode = (__u64)inode;
	known->fd = fd;
	known->id = id;
	return id;
}

/* Address of the struct file of a descriptor of the current thread; 0 if it is not open. */
static __always_inline __u64 file_at(struct task_struct *task, __u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *table;
	__u64 address = 0;

	if (!files)
		return 0;
	table = files->fdt;
	if (!table || fd >= table->max_fds)
		return 0;
	if (bpf_probe_read_kernel(&address, sizeof(address), table->fd + fd))
		return 0;
	return address;
}

/* Id of the file of a descriptor of the current thread; 0 if there is none or it is not known. */
static __always_inline __u32 file_of(struct fbt_slot *slot, struct task_struct *task, __u32 fd)
{
	struct fbt_slot_file *known = &slot->files[fd % FBT_SLOT_FILES];
	__u64 address = file_at(task, fd);
	struct file *file = (struct file *)address;

	if (!file)
		return 0;
	/* The inode on the left: what is loaded before the helper is called takes stack. */
	if (known->file == address && known->fd == fd &&
	    (__u64)BPF_CORE_READ(file, f_inode) == known->inode)
		return known->id;
	return find_file(slot, address, fd);
}

static __always_inline void forget_file(struct fbt_slot *slot, __u32 fd)
{
	slot->files[fd % FBT_SLOT_FILES].file = 0;
}

static __always_inline void forget_files(struct fbt_slot *slot)
{
	for (__u32 i = 0; i < FBT_SLOT_FILES; i++)
		slot->files[i].file = 0;
}

#endif
