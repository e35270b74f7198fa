/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* /proc/PID/maps, and the files that are mapped there. */
#ifndef FBT_MAPS_H
#define FBT_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include "vec.h"

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	bool executable;
	bool deleted; /* path no longer names this file */
	char *path;   /* as the process sees it, without " (deleted)"; NULL if it is no file */
};

typedef VEC(struct mapping) mapping_vec;

/* One line of maps, newline or not. 0, -EBADMSG if it is none, -ENOMEM. path is the caller's. */
int mapping_parse(struct mapping *mapping, const char *line);

/*
 * The executable file mappings of a process, each file once, in the order of addresses. 0 or
 * -errno, logged: -ESRCH no such process, a kernel thread or a zombie; -EINVAL tgid is a thread;
 * -EPERM (names the capability).
 */
int maps_read(uint32_t tgid, mapping_vec *maps);
void maps_free(mapping_vec *maps);

/*
 * Opens the file that is mapped, whatever its path names by now: a descriptor, or -errno without a
 * message. -EPERM: map_files may not be followed and the path does not lead to the same file.
 */
int mapping_open(uint32_t tgid, const struct mapping *mapping);

#endif
