/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The library that tests inject: it counts its loads, and checks the thread that it is called on.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Signals of pthread_cancel and set*id(), which libc never blocks. */
#define LIBC_SIGNALS (1ul << (32 - 1) | 1ul << (33 - 1))

int inject_probe(void);

/*
 * Returns 7; another number if this thread does not block the program's signals, or blocks libc's.
 * Each load adds a byte to the process's INJECT_PROBE_FILE, if that is set.
 */
int inject_probe(void)
{
	const char *path = getenv("INJECT_PROBE_FILE");
	unsigned long mask = 0;
	int fd;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	if (mask & LIBC_SIGNALS || !(mask & 1ul << (SIGTERM - 1)))
		return 8;
	if (!path)
		return 7;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (write(fd, "x", 1) != 1) {
		close(fd);
		return -1;
	}
	close(fd);
	return 7;
}
