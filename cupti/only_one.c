/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "only_one.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of the end of a line of /proc/PID/maps. */
#define LINE_MAX_BYTES 64

struct making {
	const char *name;
	int (*make)(void *ctx);
	void *ctx;
	bool begun;
	int err;
};

/*
 * Whether this process has mapped a memfd of that name. The process that a library serves has; its
 * children have not. Uses no malloc, because this may run inside the driver. false if maps cannot
 * be read.
 */
static bool is_mapped(const char *name)
{
	char line[LINE_MAX_BYTES], piece[LINE_MAX_BYTES + 4096 + 1];
	/* A match may be split between two reads, so this many bytes are carried over. */
	size_t most = (size_t)snprintf(line, sizeof(line), "/memfd:%s (deleted)\n", name) - 1;
	size_t kept = 0;
	ssize_t got;
	bool found = false;
	int fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found && (got = read(fd, piece + kept, sizeof(piece) - 1 - kept)) > 0) {
		size_t length = kept + (size_t)got;

		piece[length] = '\0';
		found = strstr(piece, line);
		kept = length < most ? length : most;
		memmove(piece, piece + length - kept, kept);
	}
	close(fd);
	return found;
}

static int on_first_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct making *making = ctx;

	making->begun = true;
	if (!is_mapped(making->name))
		making->err = making->make(making->ctx);
	return 1;
}

/*
 * dl_iterate_phdr is called only because it holds the dynamic loader's lock, the one lock that both
 * copies share.
 */
int only_one__make(const char *memfd, int (*make)(void *ctx), void *ctx)
{
	struct making making = {.name = memfd, .make = make, .ctx = ctx};

	dl_iterate_phdr(on_first_library, &making);
	return making.begun ? making.err : make(ctx);
}
