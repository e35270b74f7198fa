/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cuda_use.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Symbolic links are followed as the process follows them. */
static bool lacks_file(uint32_t tgid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char root[64];
	long found;
	int dir;

	if (*path != '/')
		return false;
	snprintf(root, sizeof(root), "/proc/%u/root", tgid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return false;
	found = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (found < 0)
		found = errno == ENOENT || errno == ENOTDIR ? -1 : 0;
	else
		close((int)found);
	close(dir);
	return found < 0;
}

static void explain(uint32_t tgid, const char *path, char detail[CUDA_USE_DETAIL_SIZE])
{
	const char *slash = strrchr(path, '/');

	if (!strcmp(slash ? slash + 1 : path, SHIM) && lacks_file(tgid, path))
		snprintf(detail, CUDA_USE_DETAIL_SIZE,
			 "%.*s of CUDA_INJECTION64_PATH is not there where it runs", PATH_SHOWN,
			 path);
	else if (!strcmp(slash ? slash + 1 : path, SHIM))
		snprintf(detail, CUDA_USE_DETAIL_SIZE,
			 "%.*s of CUDA_INJECTION64_PATH is not loaded: CUDA was not used yet, or "
			 "it cannot load the file",
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
			explain(tgid, item + strlen(INJECTION), detail);
	}
	process_strings_clear(&environment);
	return true;
}
