/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cuda_use.h"

#include <stdio.h>
#include <string.h>

#include "map_search.h"
#include "process_strings.h"

#define LIBCUDA	  "libcuda.so"
#define SHIM	  "libferrum_cupti.so"
#define INJECTION "CUDA_INJECTION64_PATH="
/* Of a path that the target may have made up. */
#define PATH_SHOWN 120

/* Also libcuda.so.1 and libcuda.so.580.65.06. */
static bool is_named(const struct mapping *mapping, const void *name)
{
	const char *slash = mapping->path ? strrchr(mapping->path, '/') : NULL;

	return slash && !strncmp(slash + 1, name, strlen(name));
}

static bool has_file(uint32_t tgid, const char *name)
{
	return map_search(tgid, name, is_named, name);
}

static void explain(const char *path, char detail[CUDA_USE_DETAIL_SIZE])
{
	const char *slash = strrchr(path, '/');

	if (!strcmp(slash ? slash + 1 : path, SHIM))
		snprintf(detail, CUDA_USE_DETAIL_SIZE,
			 "%.*s of CUDA_INJECTION64_PATH is not loaded: CUDA was not used yet, or "
			 "the file is not there for it",
			 PATH_SHOWN, path);
	else
		snprintf(detail, CUDA_USE_DETAIL_SIZE, "CUDA_INJECTION64_PATH names %.*s",
			 PATH_SHOWN, path);
}

bool cuda_use_is_there(uint32_t tgid)
{
	return has_file(tgid, LIBCUDA);
}

bool cuda_use_lacks_shim(uint32_t tgid, char detail[CUDA_USE_DETAIL_SIZE])
{
	struct process_strings environment = {0};

	*detail = '\0';
	if (!has_file(tgid, LIBCUDA) || has_file(tgid, SHIM))
		return false;
	if (process_strings_read(&environment, tgid, "environ"))
		return true;
	for (size_t i = 0; i < environment.count; i++) {
		const char *item = environment.items[i];

		if (!strncmp(item, INJECTION, strlen(INJECTION)) && item[strlen(INJECTION)])
			explain(item + strlen(INJECTION), detail);
	}
	process_strings_clear(&environment);
	return true;
}
