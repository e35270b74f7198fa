/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "only_one.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "fbt_gpu.h"

#define MAPPED "/memfd:" FBT_GPU_MEMFD " (deleted)\n"
/* A match may be split between two reads, so this many bytes are carried over. */
#define KEPT (sizeof(MAPPED) - 2)

struct making {
	int (*make)(void *ctx);
	void *ctx;
	bool begun;
	int err;
};

/*
 * Whether this process has a ring. The process that serves a ring has it mapped; its children have
 * not. Uses no malloc, because this may run inside the driver. false if maps cannot be read.
 */
static bool has_ring(void)
{
	char piece[KEPT + 4096 + 1];
	size_t kept = 0;
	ssize_t got;
	bool found = false;
	int fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found && (got = read(fd, piece + kept, sizeof(piece) - 1 - kept)) > 0) {
		size_t length = kept + (size_t)got;

		piece[length] = '\0';
		found = strstr(piece, MAPPED);
		kept = length < KEPT ? length : KEPT;
		memmove(piece, piece + length - kept, kept);
	}
	close(fd);
	return found;
}

static int on_first_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct making *making = ctx;

	making->begun = true;
	if (!has_ring())
		making->err = making->make(making->ctx);
	return 1;
}

/*
 * dl_iterate_phdr is called only because it holds the dynamic loader's lock, the one lock that both
 * copies share.
 */
int only_one__make(int (*make)(void *ctx), void *ctx)
{
	struct making making = {.make = make, .ctx = ctx};

	dl_iterate_phdr(on_first_library, &making);
	return making.begun ? making.err : make(ctx);
}
