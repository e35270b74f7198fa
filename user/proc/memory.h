/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads memory of other processes (/proc/PID/mem), in a thread of its own: a page may not come for
 * long, because a file system does not answer, or because the process itself is to provide it, and
 * the process may keep its memory map locked. Then the tool goes on without.
 */
#ifndef FBT_PROC_MEMORY_H
#define FBT_PROC_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include "proc/open.h"

/* Room for all parts of a read together. */
#define MEMORY_BYTES (1u << 20)
#define MEMORY_PARTS 512

struct memory_part {
	uint64_t address;
	uint32_t size;
	/* Set by the read: its bytes, which are the memory's up to the first page that is not
	 * there. */
	uint32_t got;
	const uint8_t *data;
};

struct memory;

/* Starts no thread yet. NULL: -ENOMEM. */
struct memory *memory__new(void);
void memory__free(struct memory *memory);

/*
 * Reads all parts, MEMORY_PARTS and MEMORY_BYTES at most; what is above has got 0. Data lives until
 * the next read, or memory__wipe. 0, also if some parts are not there; -EACCES or -EPERM: it may
 * not be read; -ESRCH; -ETIMEDOUT if it takes longer than 100 ms; -EBUSY while a read that timed
 * out has not ended; or another -errno: then nothing was read.
 */
int memory__read(struct memory *memory, struct proc_ref ref, struct memory_part *parts,
		 size_t count);

/* Memory of a process is not kept longer than it is needed. */
void memory__wipe(struct memory *memory);

#endif
