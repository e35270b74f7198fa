/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/machine_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "proc/open.h"

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

/* "0::/path" of the unified hierarchy, "4:cpu,cpuacct:/path" of the other. */
static const char *path_of(char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return NULL;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	return !controllers[1] || text_list_has(controllers + 1, ',', "cpu") ? path : NULL;
}

static void keep_end(char *name, size_t size, const char *path)
{
	const char *from = path, *slash;
	size_t length = strlen(path);

	if (length >= size) {
		from = path + length - size + 1;
		slash = strchr(from, '/');
		from = slash && slash[1] ? slash : from;
	}
	snprintf(name, size, "%s", from);
}

void machine_cgroup_name(uint32_t tgid, char *name, size_t size)
{
	FILE *file = proc_fopen((struct proc_ref){tgid, 0}, "cgroup");
	char line[4096];

	*name = '\0';
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		const char *path = path_of(line);

		if (path && (!*name || !strcmp(name, "/")))
			keep_end(name, size, path);
	}
	fclose(file);
}
