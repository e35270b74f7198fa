/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/cuda_use.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc/process.h"
#include "proc/status.h"
#include "sandbox/broker.h"

#define INJECTION	 "CUDA_INJECTION64_PATH="
#define THREAD_NAME_SIZE 64
/* Start of a memfd's name in /proc/PID/maps, after the slash. */
#define MEMFD "memfd:"

bool cuda_use_is_library(const struct mapping *mapping, const char *name)
{
	const char *found = mapping->path ? mapping_name(mapping) : "";

	if (!strncmp(found, MEMFD, strlen(MEMFD)))
		found += strlen(MEMFD);
	return !strncmp(found, name, strlen(name));
}

static bool is_library(const struct mapping *mapping, const void *name)
{
	return cuda_use_is_library(mapping, name);
}

static bool has_library(uint32_t tgid, const char *name)
{
	return maps_search(tgid, name, is_library, name);
}

bool cuda_use_is_there(uint32_t tgid)
{
	return has_library(tgid, CUDA_LIBRARY);
}

bool cuda_use_lacks_shim(uint32_t tgid)
{
	return has_library(tgid, CUDA_LIBRARY) && !has_library(tgid, CUDA_SHIM);
}

int cuda_use_serve(const void *nothing, const struct broker_order *order)
{
	return proc_root_open((struct proc_ref){.tgid = order->tgid}, order->path);
}

/*
 * A confined tool asks the broker: proc_root_open uses openat2, whose flags are in memory, where a
 * seccomp filter cannot check them.
 */
static bool lacks_file(uint32_t tgid, const char *path)
{
	int found;

	if (*path != '/')
		return false;
	if (broker_is_there())
		found = broker_open(BROKER_LOOK, tgid, 0, path);
	else
		found = proc_root_open((struct proc_ref){.tgid = tgid}, path);
	if (found >= 0)
		close(found);
	return found == -ENOENT || found == -ENOTDIR;
}

/*
 * Whether the driver has started a thread: "cuda-EvtHandlr", "cuda00001400006". A forked child does
 * not inherit threads. A name equal to the first thread's was inherited from a program called
 * "cuda…".
 */
static bool has_cuda_thread(uint32_t tgid)
{
	char first[THREAD_NAME_SIZE], name[THREAD_NAME_SIZE];
	pid_vec threads = {0};
	bool found = false;

	proc_comm((struct proc_ref){tgid, tgid}, first, sizeof(first));
	threads_list(tgid, &threads);
	vec_for_each (tid, &threads) {
		if (!found)
			found = proc_comm((struct proc_ref){tgid, *tid}, name, sizeof(name)) &&
				!strncmp(name, "cuda", 4) && strcmp(name, first) != 0;
	}
	vec_free(&threads);
	return found;
}

bool cuda_use_is_inherited(uint32_t tgid)
{
	struct thread_stat stat;

	return !thread_stat_read(&stat, (struct proc_ref){tgid, tgid}) &&
	       stat.flags & THREAD_FORKED && cuda_use_is_there(stat.parent_tgid) &&
	       !has_cuda_thread(tgid);
}

enum cuda_injection cuda_use_injection(uint32_t tgid, char path[CUDA_PATH_SIZE])
{
	struct process_strings environment = {0};
	const char *slash;

	*path = '\0';
	if (process_strings_read(&environment, tgid, "environ"))
		return CUDA_INJECTION_NONE;
	for (size_t i = 0; i < environment.count; i++) {
		if (!strncmp(environment.items[i], INJECTION, strlen(INJECTION)))
			snprintf(path, CUDA_PATH_SIZE, "%s",
				 environment.items[i] + strlen(INJECTION));
	}
	process_strings_clear(&environment);
	if (!*path)
		return CUDA_INJECTION_NONE;
	slash = strrchr(path, '/');
	if (strcmp(slash ? slash + 1 : path, CUDA_SHIM) != 0)
		return CUDA_INJECTION_OTHER;
	return lacks_file(tgid, path) ? CUDA_INJECTION_MISSING : CUDA_INJECTION_SHIM;
}
