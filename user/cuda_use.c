/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cuda_use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker.h"
#include "map_search.h"
#include "process_strings.h"
#include "processes.h"

#define LIBCUDA	  "libcuda.so"
#define SHIM	  "libferrum_cupti.so"
#define INJECTION "CUDA_INJECTION64_PATH="
/* Of a path that the target may have made up. */
#define PATH_SHOWN	 120
#define THREAD_NAME_SIZE 64

/* Of a file without a path: a shim that was put into a running process. */
#define MEMFD "memfd:"
/* Forked, and no program was started since (the kernel's PF_FORKNOEXEC). */
#define FLAG_FORKED 0x40u

/* Also libcuda.so.1 and libcuda.so.580.65.06. */
static bool is_named(const struct mapping *mapping, const void *name)
{
	const char *slash = mapping->path ? strrchr(mapping->path, '/') : NULL;

	if (!slash)
		return false;
	slash++;
	if (!strncmp(slash, MEMFD, strlen(MEMFD)))
		slash += strlen(MEMFD);
	return !strncmp(slash, name, strlen(name));
}

static bool has_file(uint32_t tgid, const char *name)
{
	return map_search(tgid, name, is_named, name);
}

/* Symbolic links are followed as the process follows them. A descriptor (O_PATH) or -errno. */
static int look(uint32_t tgid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char root[64];
	int dir, found;

	snprintf(root, sizeof(root), "/proc/%u/root", tgid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -EACCES;
	found = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (found < 0)
		found = -errno;
	close(dir);
	return found;
}

int cuda_use_serve(const void *nothing, const struct broker_order *order)
{
	(void)nothing;
	return look(order->tgid, order->path);
}

/* How to open is not for our filter to see in that call: another makes it. */
static bool lacks_file(uint32_t tgid, const char *path)
{
	int found;

	if (*path != '/')
		return false;
	if (broker_is_there())
		found = broker_open(BROKER_LOOK, tgid, 0, path);
	else
		found = look(tgid, path);
	if (found >= 0)
		close(found);
	return found == -ENOENT || found == -ENOTDIR;
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

static bool read_name(char name[THREAD_NAME_SIZE], uint32_t tgid, const char *thread)
{
	char path[64];
	FILE *file;
	bool read;

	snprintf(path, sizeof(path), "/proc/%u/task/%.20s/comm", tgid, thread);
	file = fopen(path, "re");
	read = file && fgets(name, THREAD_NAME_SIZE, file);
	if (file)
		fclose(file);
	return read;
}

/* The driver's own, "cuda-EvtHandlr", "cuda00001400006": threads are not inherited. */
static bool has_cuda_thread(uint32_t tgid)
{
	char path[64], first[THREAD_NAME_SIZE] = "", name[THREAD_NAME_SIZE];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "%u", tgid);
	read_name(first, tgid, path);
	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder)))
		found = read_name(name, tgid, entry->d_name) && !strncmp(name, "cuda", 4) &&
			strcmp(name, first) != 0;
	if (folder)
		closedir(folder);
	return found;
}

bool cuda_use_is_inherited(uint32_t tgid)
{
	struct thread_stat stat;

	return !thread_stat_read(&stat, tgid, tgid) && stat.flags & FLAG_FORKED &&
	       has_file(stat.parent_tgid, LIBCUDA) && !has_cuda_thread(tgid);
}

static bool is_shim_there(uint32_t tgid, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && !strcmp(slash + 1, SHIM) && !lacks_file(tgid, path);
}

bool cuda_use_will_have_shim(uint32_t tgid)
{
	struct process_strings environment = {0};
	bool found = false;

	if (process_strings_read(&environment, tgid, "environ"))
		return false;
	for (size_t i = 0; i < environment.count && !found; i++)
		found = !strncmp(environment.items[i], INJECTION, strlen(INJECTION)) &&
			is_shim_there(tgid, environment.items[i] + strlen(INJECTION));
	process_strings_clear(&environment);
	return found;
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
