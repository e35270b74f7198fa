/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a program says, for a tool that runs as root beside a production server. */
#ifndef FBT_PROGRAM_OUTPUT_H
#define FBT_PROGRAM_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

struct program {
	const char *path;
	const char *const *arguments;	/* from its name on; NULL ends */
	const char *const *environment; /* all of it; NULL ends */
	uint32_t timeout_ms;
};

/*
 * Runs it in "/", without a shell, without our descriptors, its stdin and stderr /dev/null. Keeps
 * the first size - 1 bytes it writes to stdout in text, cut at a NUL, and drops the rest. After the
 * timeout it is killed, with its children. 0 with its exit status in *status (128 + signal if it
 * was killed by one); -ETIMEDOUT; or -errno. Logs nothing.
 */
int program_output(const struct program *program, char *text, size_t size, int *status);

#endif
