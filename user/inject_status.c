/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool starts(const char *line, const char *name, const char **value)
{
	*value = line + strlen(name);
	return !strncmp(line, name, strlen(name));
}

static void take_number(const char *value, uint32_t *number)
{
	(void)sscanf(value, " %" SCNu32, number);
}

void inject_status_add(struct inject_status *status, const char *line)
{
	const char *value;
	uint32_t flag = 0;

	if (starts(line, "Tgid:", &value))
		take_number(value, &status->tgid);
	else if (starts(line, "State:", &value))
		(void)sscanf(value, " %c", &status->state);
	else if (starts(line, "TracerPid:", &value))
		take_number(value, &status->tracer);
	else if (starts(line, "Uid:", &value))
		take_number(value, &status->uid);
	else if (starts(line, "Threads:", &value))
		take_number(value, &status->threads);
	else if (starts(line, "Seccomp:", &value))
		take_number(value, &status->seccomp);
	else if (starts(line, "SigCgt:", &value))
		(void)sscanf(value, " %" SCNx64, &status->caught);
	else if (starts(line, "VmSize:", &value))
		(void)sscanf(value, " %" SCNu64, &status->size_kib);
	else if (starts(line, "VmData:", &value))
		(void)sscanf(value, " %" SCNu64, &status->data_kib);
	else if (starts(line, "x86_Thread_features:", &value))
		status->shadow_stack = strstr(value, "shstk");
	else if (starts(line, "NoNewPrivs:", &value)) {
		take_number(value, &flag);
		status->no_new_privs = flag;
	}
}

int inject_status_read(struct inject_status *status, uint32_t tgid, uint32_t tid)
{
	char path[64], line[1024];
	FILE *file;

	memset(status, 0, sizeof(*status));
	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", tgid, tid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	while (fgets(line, sizeof(line), file))
		inject_status_add(status, line);
	fclose(file);
	return status->state ? 0 : -ESRCH;
}

uint64_t inject_limit_read(uint32_t tgid, uint32_t thread, const char *name)
{
	uint64_t limit = INJECT_UNLIMITED;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/limits", tgid, thread);
	file = fopen(path, "re");
	if (!file)
		return limit;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, strlen(name)) &&
		    sscanf(line + strlen(name), " %" SCNu64, &limit) == 1)
			break;
	}
	fclose(file);
	return limit;
}
