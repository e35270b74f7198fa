/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where in a process the stub (cupti/stub/) is or goes: the unused zero bytes between the end of an
 * executable segment and the end of its last page, of libc first. It is written once and never
 * rewritten: a helper thread may be in it.
 */
#ifndef FBT_INJECT_PLACE_H
#define FBT_INJECT_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_inject.h"
#include "inject_maps.h"
#include "inject_point.h"

/* Room for the stub in any build of it; such a place has to have as many bytes. */
#define INJECT_STUB_MAX 4096

struct inject_place {
	uint64_t stub; /* address in the process */
	uint32_t size;
	bool written;			/* it was there already, with the same bytes */
	uint8_t bytes[INJECT_STUB_MAX]; /* what it has to be there */
	char file[64];			/* name of the file it lies behind, for messages */
};

/* Bytes of the stub with this table; 0: there is none for this processor. */
uint32_t inject_stub_build(uint8_t bytes[INJECT_STUB_MAX],
			   const uint64_t functions[FBT_INJECT_FUNCTION_COUNT]);

/*
 * Finds it, or room for it; writes nothing. thread: a living thread of the process, by which /proc
 * is read. A stub that is there already is found wherever it lies; one that somebody who died left
 * half written is room for the same bytes. 0; -ENOSPC no file has that much room; -EEXIST there is
 * a stub of another version, or other functions; -ENOEXEC none for this processor; -errno of /proc.
 */
int inject_place_find(struct inject_place *place, uint32_t tgid, uint32_t thread,
		      const inject_mapping_vec *maps,
		      const uint64_t functions[FBT_INJECT_FUNCTION_COUNT]);

/*
 * Writes it through /proc/TGID/task/THREAD/mem, where it is not yet, and reads it back. Its head
 * comes last: what has none is neither taken for a stub nor gone to. hook (NULL: none) is called at
 * INJECT_AT_STUB_PART, when half is written; not if it was written. 0, and written is set; -EAGAIN
 * if the place is not free any more; -EACCES the kernel does not let us write there
 * (proc_mem.force_override): nothing is changed; -ESRCH the process has ended or called execve;
 * -errno.
 */
int inject_place_write(struct inject_place *place, uint32_t tgid, uint32_t thread,
		       const struct inject_hook *hook);

#endif
