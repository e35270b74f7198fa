/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Reads /proc/PID/maps and opens the files that are mapped there. */
#ifndef FBT_PROC_MAPS_H
#define FBT_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "proc/open.h"

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	bool readable;
	bool writable;
	bool executable;
	bool shared;
	bool deleted; /* path no longer names this file */
	bool is_vdso; /* the kernel's own code in each process, of no file */
	char *path;   /* as the process sees it, without " (deleted)"; NULL if not of a file */
};

typedef VEC(struct mapping) mapping_vec;

/* Parses a line of maps. 0, -EBADMSG if it is malformed, or -ENOMEM. The caller frees path. */
int mapping_parse(struct mapping *mapping, const char *line);

/*
 * Whether both are of the same file; their paths must not be NULL. On btrfs all subvolumes have one
 * device in maps, and each its own inode numbers, so paths are compared too.
 */
bool mapping_is_same_file(const struct mapping *a, const struct mapping *b);

/* The file name in the path, which must not be NULL. */
const char *mapping_name(const struct mapping *mapping);

/*
 * The executable file mappings of a process, each file once, sorted by address. 0 or -errno,
 * logged: -ESRCH for no such process, a kernel thread or a zombie; -EINVAL if tgid is a thread;
 * -EPERM, with a message that names the capability.
 */
int maps_read(uint32_t tgid, mapping_vec *maps);
int maps_read_quietly(uint32_t tgid, mapping_vec *maps); /* the same, not logged */

/*
 * All file mappings of a process, also of data, sorted by address. The caller frees maps, also
 * after an error. 0 or -errno, without a message: -ESRCH if there are none (any more), -EACCES if
 * they may not be read.
 */
int maps_read_all(struct proc_ref ref, mapping_vec *maps);

/* All executable mappings, also those of no file. Otherwise as maps_read_all(). */
int maps_read_executable(struct proc_ref ref, mapping_vec *maps);

void maps_free(mapping_vec *maps);

/* Whether a call changes, copies or replaces the memory map, which is locked meanwhile. */
bool maps_call_locks(int64_t nr);

/*
 * Whether a thread waits uninterruptibly in such a call: who reads the map would wait with it, for
 * as long as a file system does not answer. Where the calls may not be read, any uninterruptible
 * wait counts.
 */
bool maps_are_locked(uint32_t tgid);

/*
 * Whether is_wanted is true for a mapping whose line in maps contains part. The path of the mapping
 * may be NULL. False, without a message, also if maps cannot be read.
 */
bool maps_search(uint32_t tgid, const char *part,
		 bool (*is_wanted)(const struct mapping *mapping, const void *ctx),
		 const void *ctx);

/*
 * Opens the mapped file, whatever its path names by now. Returns a descriptor, or -errno without a
 * message: -EPERM if map_files may not be followed and the path leads to another file.
 */
int mapping_open(uint32_t tgid, const struct mapping *mapping);

/*
 * Opens the memfd of that name that a process has mapped, for reading and writing; it may have
 * closed its descriptor. As memfd_open; -EACCES: map_files may not be followed.
 */
int memfd_open_mapped(uint32_t tgid, const char *name);

#endif
