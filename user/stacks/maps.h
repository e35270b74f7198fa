/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where the code of processes lies in their memory. */
#ifndef FBT_STACKS_MAPS_H
#define FBT_STACKS_MAPS_H

#include "stacks/files.h"
#include "stacks/unwind.h"

struct code_maps;

/* files is borrowed. NULL: -ENOMEM. */
struct code_maps *code_maps__new(struct code_files *files);
void code_maps__free(struct code_maps *maps);

/*
 * 0, or -ENOENT if there is no code at that address of a process. The memory map of a process is
 * read when it is first asked for, again at most once a second when an address is in none of it,
 * and when it is 10 s old, but not while a thread of the process keeps it locked
 * (maps_are_locked): the process cannot map memory while it is read, nor can it be read meanwhile.
 */
int code_maps__find(struct code_maps *maps, uint32_t tgid, uint64_t address, uint64_t now_ns,
		    struct code_at *code);

/* The process has ended, or runs another program. */
void code_maps__forget(struct code_maps *maps, uint32_t tgid);

#endif
