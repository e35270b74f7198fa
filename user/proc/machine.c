/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
		line[strcspn(line, "\n")] = 0;
		found = text_list_has(line, ' ', "user_shstk");
		break;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}
