/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Names of cgroups, for people: the last names of the path, from a '/' on where there is room. ""
 * is one that is not known.
 */
#ifndef FBT_PROC_CGROUP_NAME_H
#define FBT_PROC_CGROUP_NAME_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * That of a process: of its CPU controller or, if that is in its root, of the unified hierarchy.
 * "" if it has ended.
 */
void cgroup_name_of_process(uint32_t tgid, char *name, size_t size);

/*
 * That of a cgroup of version 2, by its id, which is the inode number of its folder. Looks through
 * the folders of all cgroups: tens of milliseconds where there are a thousand. "" if it was
 * removed, or lies outside of what is mounted here.
 */
void cgroup_name_of_id(uint64_t id, char *name, size_t size);

/* The same with mounts, an open file as /proc/self/mountinfo. */
void cgroup_name_find(FILE *mounts, uint64_t id, char *name, size_t size);

#endif
