/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/ways.h"

#include <inttypes.h>

#include "base/format.h"

/* The names are last parts, as in shorten_name(), or the line would be long. */
static void add_names(struct line *line, const struct ways_out *ways)
{
	uint64_t named = ways->names[0] ? ways->names[1] ? 2 : 1 : 0;
	uint64_t more = ways->targets > named ? ways->targets - named : 0;
	char name[128];

	for (uint64_t i = 0; i < named; i++)
		line_add(line, "%s%s",
			 !i	? " to "
			 : more ? ", "
				: " and ",
			 shorten_name(name, sizeof(name), ways->names[i], 40));
	if (named && more)
		line_add(line, " and %" PRIu64 " other%s", more, plural(more));
}

const char *format_ways_out(char buffer[FORMAT_WAYS_MAX], const struct ways_out *ways)
{
	struct line line = {.text = buffer, .size = FORMAT_WAYS_MAX};

	*buffer = '\0';
	if (!ways->tail_calls)
		return buffer;
	if (ways->returns)
		line_add(&line, "%" PRIu64 " return%s; ", ways->returns, plural(ways->returns));
	line_add(&line, "%" PRIu64 " tail call%s", ways->tail_calls, plural(ways->tail_calls));
	add_names(&line, ways);
	if (ways->pointers)
		line_add(&line, "%s through %s", ways->names[0] ? " and" : "",
			 ways->pointers == 1 ? "a pointer" : "pointers");
	return buffer;
}
