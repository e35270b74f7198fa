/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_check_cuda.h"

#include <stdio.h>
#include <string.h>

#include "fbt_gpu.h"
#include "inject_root.h"
#include "process_strings.h"

#define LIBCUDA	  "libcuda.so"
#define LIBCUPTI  "libcupti.so."
#define SHIM	  "libferrum_cupti.so"
#define RING	  "/memfd:" FBT_GPU_MEMFD
#define MEMFD	  "memfd:"
#define INJECTION "CUDA_INJECTION64_PATH="

/* Of CUDA 12.6; years are told from versions of CUDA by their size. */
#define NEW_YEAR    2024
#define NEW_RELEASE 3
#define YEARS_FROM  2000

/* What a tool of NVIDIA has in a process while it is at work there: Nsight Systems, Compute. */
static const char *const tools[] = {"libToolsInjection64.so", "libcuda-injection.so"};

/* Also libcuda.so.1, libcuda.so.580.65.06, and what was injected: memfd:libferrum_cupti.so. */
static const struct inject_mapping *find_library(const inject_mapping_vec *maps, const char *prefix)
{
	vec_for_each (mapping, maps) {
		const char *name = inject_mapping_name(mapping);

		if (!strncmp(name, MEMFD, strlen(MEMFD)))
			name += strlen(MEMFD);
		if (!strncmp(name, prefix, strlen(prefix)))
			return mapping;
	}
	return NULL;
}

static bool has_ring(const inject_mapping_vec *maps)
{
	vec_for_each (mapping, maps) {
		if (!strcmp(mapping->file.path, RING))
			return true;
	}
	return false;
}

enum inject_cupti inject_cupti_age(const char *name)
{
	unsigned int first, second;
	int count;

	if (strncmp(name, LIBCUPTI, strlen(LIBCUPTI)) != 0)
		return INJECT_CUPTI_UNKNOWN;
	count = sscanf(name + strlen(LIBCUPTI), "%u.%u", &first, &second);
	if (count < 1)
		return INJECT_CUPTI_UNKNOWN;
	if (first < 12 || (first >= YEARS_FROM && first < NEW_YEAR))
		return INJECT_CUPTI_OLD;
	if (first == 12)
		return count == 1   ? INJECT_CUPTI_UNKNOWN
		       : second < 6 ? INJECT_CUPTI_OLD
				    : INJECT_CUPTI_NEW;
	if (first == NEW_YEAR && count == 2 && second < NEW_RELEASE)
		return INJECT_CUPTI_OLD;
	return first == NEW_YEAR && count == 1 ? INJECT_CUPTI_UNKNOWN : INJECT_CUPTI_NEW;
}

static void check_cupti(struct inject_verdict *verdict, const inject_mapping_vec *maps)
{
	const struct inject_mapping *cupti = find_library(maps, LIBCUPTI);
	const char *name = cupti ? inject_mapping_name(cupti) : "";

	if (!cupti) {
		inject_verdict_add(verdict, INJECT_FINE, "CUPTI",
				   "none is mapped: the shim looks for one, and says so if it is "
				   "too old");
		return;
	}
	switch (inject_cupti_age(name)) {
	case INJECT_CUPTI_OLD:
		inject_verdict_add(verdict, INJECT_REFUSAL, "CUPTI",
				   "%s is older than that of CUDA 12.6, which cannot be attached "
				   "to a process that may have captured graphs: " INJECT_INSTEAD,
				   name);
		break;
	case INJECT_CUPTI_NEW:
		inject_verdict_add(verdict, INJECT_FINE, "CUPTI", "%s", cupti->file.path);
		break;
	case INJECT_CUPTI_UNKNOWN:
		inject_verdict_add(verdict, INJECT_FINE, "CUPTI",
				   "%s: its name does not tell its age, the shim will",
				   cupti->file.path);
		break;
	}
}

static void check_tools(struct inject_verdict *verdict, const inject_mapping_vec *maps)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		if (find_library(maps, tools[i]))
			inject_verdict_add(verdict, INJECT_WARNING, "CUPTI",
					   "%s, of another profiler, is mapped: GPU records stay "
					   "off while that one has CUPTI",
					   tools[i]);
	}
}

static void check_path(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread,
		       const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strcmp(slash ? slash + 1 : path, SHIM) != 0)
		inject_verdict_add(verdict, INJECT_WARNING, "CUPTI",
				   "CUDA_INJECTION64_PATH names %.200s: GPU records stay off if "
				   "that one has CUPTI",
				   path);
	else if (*path == '/' && inject_root_has(tgid, thread, path))
		inject_verdict_add(verdict, INJECT_WARNING, "shim",
				   "CUDA loads %.200s itself when the process first uses it "
				   "(CUDA_INJECTION64_PATH): --gpu=auto is enough if that is still "
				   "to come",
				   path);
}

/* What it was started with. */
static void check_environment(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	struct process_strings environment = {0};

	if (process_strings_read(&environment, thread, "environ"))
		return;
	for (size_t i = 0; i < environment.count; i++) {
		const char *item = environment.items[i];

		if (!strncmp(item, INJECTION, strlen(INJECTION)) && item[strlen(INJECTION)])
			check_path(verdict, tgid, thread, item + strlen(INJECTION));
	}
	process_strings_clear(&environment);
}

void inject_check_cuda(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread,
		       const inject_mapping_vec *maps)
{
	const struct inject_mapping *cuda = find_library(maps, LIBCUDA);
	const struct inject_mapping *shim = find_library(maps, SHIM);

	verdict->present = shim || has_ring(maps);
	if (verdict->present) {
		inject_verdict_add(verdict, INJECT_FINE, "shim", "is there already (%s)",
				   shim ? shim->file.path : RING);
		return;
	}
	if (!cuda) {
		inject_verdict_add(verdict, INJECT_REFUSAL, "CUDA",
				   "no " LIBCUDA " is mapped: nothing to trace; is it the right "
				   "process, and has it used CUDA yet?");
		return;
	}
	inject_verdict_add(verdict, INJECT_FINE, "CUDA", "%s", cuda->file.path);
	check_cupti(verdict, maps);
	check_tools(verdict, maps);
	check_environment(verdict, tgid, thread);
}
