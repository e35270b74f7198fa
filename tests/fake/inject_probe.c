/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What tests inject: it counts how often it was loaded, and says so in the environment's file. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int inject_probe(void);

/* INJECT_PROBE_FILE of the process gets a byte for each load, if it is set. */
int inject_probe(void)
{
	const char *path = getenv("INJECT_PROBE_FILE");
	int fd;

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
