/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where a step had its page faults, in the JSON report. */
#include "base/json.h"
#include "judge/explained.h"
#include "report/part.h"

static void write_functions(struct json *json, const struct window *window,
			    const struct fbt_fault_site *site)
{
	char name[FRAMES_NAME];

	json_array_begin(json, "functions");
	for (int i = 0; i < FBT_FAULT_CALLERS && site->codes[i]; i++)
		json_string(json, NULL, frames_name(window__code(window, site->codes[i]), name));
	json_array_end(json);
}

static void write_site(struct json *json, const struct window *window,
		       const struct fbt_fault_site *site)
{
	static const char *const mappings[FBT_MAPPING_COUNT] = {
		[FBT_MAPPING_UNKNOWN] = "unknown",
		[FBT_MAPPING_FILE] = "file",
		[FBT_MAPPING_ANON] = "anon",
		[FBT_MAPPING_STACK] = "stack",
	};
	const struct file *file = site->file ? window__file(window, site->file) : NULL;

	json_object_begin(json, NULL);
	json_uint(json, "faults", site->faults);
	json_uint(json, "majors", site->majors);
	json_string(json, "mapping", mappings[site->mapping % FBT_MAPPING_COUNT]);
	json_string(json, "path", file && *file->path ? file->path : NULL);
	write_functions(json, window, site);
	json_object_end(json);
}

void report_json_faults(struct json *json, const struct window *window,
			const struct fbt_fault_sites *sites)
{
	if (sites->header.type != FBT_EVENT_FAULT_SITES)
		return;
	json_object_begin(json, "page_faults");
	json_uint(json, "faults", sites->faults);
	json_uint(json, "in_calls", sites->in_calls);
	json_array_begin(json, "sites");
	for (uint32_t i = 0; i < sites->count; i++)
		write_site(json, window, &sites->sites[i]);
	json_array_end(json);
	json_object_end(json);
}
