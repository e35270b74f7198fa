/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The memory of a process, read while it runs. It is hostile: it may be anything, and another thing
 * at the next look.
 */
#ifndef FBT_PYTHON_MEMORY_H
#define FBT_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python_memory {
	/* Whether all size bytes at an address were read. */
	bool (*read)(void *ctx, uint64_t address, void *to, size_t size);
	void *ctx;
};

/*
 * That of a process: /proc/PID/mem, because the filter of a window forbids process_vm_readv. Needs
 * the rights of ptrace(2), but does not stop the process. 0 or -errno, without a message.
 */
int python_memory_open(struct python_memory *memory, uint32_t tgid);
void python_memory_close(struct python_memory *memory); /* that of python_memory_open only */

static inline bool memory_read(const struct python_memory *memory, uint64_t address, void *to,
			       size_t size)
{
	return address && memory->read(memory->ctx, address, to, size);
}

static inline bool memory_word(const struct python_memory *memory, uint64_t address, uint64_t *word)
{
	return memory_read(memory, address, word, sizeof(*word));
}

#endif
