/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "map_search.h"

#include <stdio.h>
#include <string.h>

bool map_search(uint32_t tgid, const char *part,
		bool (*is_wanted)(const struct mapping *mapping, const void *ctx), const void *ctx)
{
	struct mapping mapping;
	size_t capacity = 0;
	char *line = NULL, path[64];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &capacity, maps) > 0) {
		if (!strstr(line, part) || mapping_parse(&mapping, line))
			continue;
		found = is_wanted(&mapping, ctx);
		free(mapping.path);
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}
