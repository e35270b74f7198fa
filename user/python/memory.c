/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include "proc/open.h"
#include "proc/process.h"

/* Addresses of user space: pread takes signed offsets. */
#define ADDRESS_MAX ((uint64_t)1 << 62)

static bool read_file(void *ctx, uint64_t address, void *to, size_t size)
{
	int fd = (int)(intptr_t)ctx;

	return address < ADDRESS_MAX && pread(fd, to, size, (off_t)address) == (ssize_t)size;
}

int python_memory_open(struct python_memory *memory, uint32_t tgid)
{
	int fd = proc_open(processes_ref(tgid), "mem", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fd;
	*memory = (struct python_memory){read_file, (void *)(intptr_t)fd};
	return 0;
}

void python_memory_close(struct python_memory *memory)
{
	if (memory->read)
		close((int)(intptr_t)memory->ctx);
	memory->read = NULL;
}
