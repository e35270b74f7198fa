/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/machine_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int machine_switches(uint64_t *count)
{
	FILE *file = fopen("/proc/stat", "re");
	char *line = NULL;
	size_t size = 0;
	int err = -ENODATA;

	if (!file)
		return -errno;
	/* The line of interrupts before it may be long. */
	while (err && getline(&line, &size, file) > 0)
		err = sscanf(line, "ctxt %" SCNu64, count) == 1 ? 0 : -ENODATA;
	free(line);
	fclose(file);
	return err;
}

uint32_t machine_cpus(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus > 0 ? (uint32_t)cpus : 1;
}
