/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Version 1 says "none" by a number near 2^63, rounded down to whole pages of any size. */
#define MEMORY_MAX (UINT64_C(1) << 62)

/* A hierarchy of cgroups, as mounted. */
struct hierarchy {
	bool v2;
	char root[PATH_MAX];	/* the cgroup at the mount point */
	char folder[PATH_MAX];	/* the mount point */
	char options[PATH_MAX]; /* of version 1: its controllers are among them */
};

/* Blanks in a path are written as \040. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *at = path; *at; to++) {
		unsigned int byte;

		if (*at == '\\' && sscanf(at + 1, "%3o", &byte) == 1) {
			*to = (char)byte;
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
}

/* "31 23 0:28 ROOT FOLDER OPTIONS … - TYPE SOURCE OPTIONS" (proc(5)) */
static bool parse_mount(const char *line, struct hierarchy *hierarchy)
{
	const char *dash = strstr(line, " - ");
	char type[16];

	if (!dash ||
	    sscanf(line, "%*s %*s %*s %4095s %4095s", hierarchy->root, hierarchy->folder) != 2 ||
	    sscanf(dash, " - %15s %*s %4095s", type, hierarchy->options) != 2)
		return false;
	unescape(hierarchy->root);
	unescape(hierarchy->folder);
	hierarchy->v2 = !strcmp(type, "cgroup2");
	return hierarchy->v2 || !strcmp(type, "cgroup");
}

/* "4:cpu,cpuacct:/path", of version 2 "0::/path"; the path is at *path, without newline. */
static bool is_in_hierarchy(char *line, const struct hierarchy *hierarchy, const char *controller,
			    const char **path)
{
	char *controllers = strchr(line, ':');
	char *at = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!at)
		return false;
	*at++ = '\0';
	at[strcspn(at, "\n")] = '\0';
	*path = at;
	if (hierarchy->v2)
		return !controllers[1];
	return text_list_has(controllers + 1, ',', controller) &&
	       text_list_has(hierarchy->options, ',', controller);
}

/* Whether it lies outside of our cgroup namespace: "/../b" (cgroup_namespaces(7)). */
static bool is_outside(const char *path)
{
	return !strncmp(path, "/..", 3) && (!path[3] || path[3] == '/');
}

/* What follows the root in the path, "" or "/…"; NULL: it lies elsewhere. */
static const char *path_below(const char *root, const char *path)
{
	size_t size = strcmp(root, "/") ? strlen(root) : 0;

	if (strncmp(path, root, size) != 0 || (path[size] && path[size] != '/') || is_outside(path))
		return NULL;
	return strcmp(path + size, "/") ? path + size : "";
}

/* Reads a file of a cgroup into text; false if there is none. */
static bool read_text(const char *folder, const char *name, char *text, size_t size)
{
	char path[PATH_MAX + 64];
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fread(text, 1, size - 1, file);
	text[got] = '\0';
	fclose(file);
	return got;
}

/* The number after a name at the start of a line; the first one, if the name is ""; else 0. */
static uint64_t number_of(const char *folder, const char *file, const char *name)
{
	char text[4096];
	size_t size = strlen(name);
	const char *at = read_text(folder, file, text, sizeof(text)) ? text : NULL;

	for (; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, size))
			return strtoull(at + size, NULL, 10);
	}
	return 0;
}

static bool read_quota(const char *folder, bool v2, uint64_t *quota_us, uint64_t *period_us)
{
	char text[64];

	if (v2)
		return read_text(folder, "cpu.max", text, sizeof(text)) &&
		       sscanf(text, "%" SCNu64 " %" SCNu64, quota_us, period_us) == 2 && *period_us;
	*period_us = number_of(folder, "cpu.cfs_period_us", "");
	return read_text(folder, "cpu.cfs_quota_us", text, sizeof(text)) && *text != '-' &&
	       sscanf(text, "%" SCNu64, quota_us) == 1 && *period_us;
}

static void add_cpu(struct cgroup_limits *limits, const char *folder, bool v2)
{
	uint64_t quota_us, period_us;

	if (!read_quota(folder, v2, &quota_us, &period_us))
		return;
	if (limits->period_us && (double)quota_us / (double)period_us >=
					 (double)limits->quota_us / (double)limits->period_us)
		return;
	limits->quota_us = quota_us;
	limits->period_us = period_us;
	limits->periods = number_of(folder, "cpu.stat", "nr_periods ");
	limits->throttled = number_of(folder, "cpu.stat", "nr_throttled ");
}

static void add_memory(struct cgroup_limits *limits, const char *folder, bool v2)
{
	uint64_t bytes;
	char text[64];

	if (!read_text(folder, v2 ? "memory.max" : "memory.limit_in_bytes", text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64, &bytes) != 1 || bytes >= MEMORY_MAX ||
	    bytes >= limits->memory_bytes)
		return;
	limits->memory_bytes = bytes;
	limits->memory_hits = v2 ? number_of(folder, "memory.events", "max ")
				 : number_of(folder, "memory.failcnt", "");
}

static void add_hierarchy(struct cgroup_limits *limits, const struct hierarchy *hierarchy,
			  const char *controller, const char *path)
{
	const char *below = path_below(hierarchy->root, path);
	size_t top = strlen(hierarchy->folder);
	char folder[2 * PATH_MAX];
	char *slash;

	limits->hidden |= is_outside(path);
	if (!below)
		return;
	snprintf(folder, sizeof(folder), "%s%s", hierarchy->folder, below);
	do {
		if (!strcmp(controller, "cpu"))
			add_cpu(limits, folder, hierarchy->v2);
		else
			add_memory(limits, folder, hierarchy->v2);
		slash = strrchr(folder, '/');
		if (slash)
			*slash = '\0';
	} while (slash && strlen(folder) >= top);
}

static void add_mount(struct cgroup_limits *limits, const struct hierarchy *hierarchy,
		      FILE *cgroups)
{
	static const char *const controllers[] = {"cpu", "memory"};
	char line[PATH_MAX + 64];
	const char *path;

	for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
		rewind(cgroups);
		while (fgets(line, sizeof(line), cgroups)) {
			if (is_in_hierarchy(line, hierarchy, controllers[i], &path))
				add_hierarchy(limits, hierarchy, controllers[i], path);
		}
	}
}

void cgroup_limits_find(struct cgroup_limits *limits, FILE *cgroups, FILE *mounts)
{
	struct hierarchy hierarchy;
	char *line = NULL;
	size_t size = 0;

	*limits = (struct cgroup_limits){.memory_bytes = UINT64_MAX};
	while (getline(&line, &size, mounts) > 0) {
		if (parse_mount(line, &hierarchy))
			add_mount(limits, &hierarchy, cgroups);
	}
	free(line);
}

bool cgroup_v2_folder(FILE *mounts, char folder[PATH_MAX])
{
	struct hierarchy hierarchy;
	bool is_found = false;
	char *line = NULL;
	size_t size = 0;

	while (!is_found && getline(&line, &size, mounts) > 0)
		is_found = parse_mount(line, &hierarchy) && hierarchy.v2;
	free(line);
	if (is_found)
		memcpy(folder, hierarchy.folder, sizeof(hierarchy.folder));
	return is_found;
}

void cgroup_limits_read(struct cgroup_limits *limits, struct proc_ref ref)
{
	FILE *cgroups = proc_fopen(ref, "cgroup");
	FILE *mounts = fopen("/proc/self/mountinfo", "re");

	*limits = (struct cgroup_limits){.memory_bytes = UINT64_MAX};
	if (cgroups && mounts)
		cgroup_limits_find(limits, cgroups, mounts);
	if (cgroups)
		fclose(cgroups);
	if (mounts)
		fclose(mounts);
}
