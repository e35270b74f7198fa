/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool machine_flags_have(const char *line, const char *flag)
{
	size_t size = strlen(flag);

	for (const char *at = line; (at = strstr(at, flag)); at += size) {
		if (at > line && at[-1] == ' ' && (!at[size] || strchr(" \n", at[size])))
			return true;
	}
	return false;
}

/* The flags of the first CPU are those of all. */
bool machine_has_shadow_stacks(void)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && getline(&line, &size, file) > 0) {
		if (strncmp(line, "flags", 5))
			continue;
		found = machine_flags_have(line, "user_shstk");
		break;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}
