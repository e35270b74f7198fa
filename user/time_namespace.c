/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "time_namespace.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define NS_PER_S 1000000000
/* Older kernels write the number of the clock. */
#define CLOCK_NUMBER "1"

bool time_namespace_parse(const char *line, int64_t *offset_ns)
{
	int64_t seconds, ns;

	if (sscanf(line, " monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) != 2 &&
	    sscanf(line, " " CLOCK_NUMBER " %" SCNd64 " %" SCNd64, &seconds, &ns) != 2)
		return false;
	if (ns < 0 || ns >= NS_PER_S)
		return false;
	return !__builtin_mul_overflow(seconds, (int64_t)NS_PER_S, offset_ns) &&
	       !__builtin_add_overflow(*offset_ns, ns, offset_ns);
}

static bool is_ours(uint32_t tgid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/time", tgid);
	return stat("/proc/self/ns/time", &ours) || stat(path, &theirs) ||
	       (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev);
}

int64_t time_namespace_offset(uint32_t tgid)
{
	char path[64], line[128];
	int64_t offset_ns = 0;
	FILE *file;

	/* The file is about the namespace of its children, which mostly is its own. */
	if (is_ours(tgid))
		return 0;
	snprintf(path, sizeof(path), "/proc/%u/timens_offsets", tgid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (time_namespace_parse(line, &offset_ns))
			break;
	}
	if (file)
		fclose(file);
	return offset_ns;
}
