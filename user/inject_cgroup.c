/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MOUNTED "/sys/fs/cgroup"

/*
 * Path of its cgroup in the hierarchy of that controller of version 1, or in that of version 2
 * ("", which is the one without a name): as proc(5) says, "ID:CONTROLLERS:PATH".
 */
static bool find_path(uint32_t tgid, uint32_t thread, const char *controller, char path[PATH_MAX])
{
	char name[64], line[PATH_MAX + 64];
	bool found = false;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%u/task/%u/cgroup", tgid, thread);
	file = fopen(name, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *at = controllers ? strchr(controllers + 1, ':') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!at)
			continue;
		*at++ = '\0';
		found = !strcmp(controllers + 1, controller);
		if (found)
			snprintf(path, PATH_MAX, "%s", at);
	}
	if (file)
		fclose(file);
	return found;
}

/* Its first line, without the newline. */
static bool read_line(const char *folder, const char *path, const char *name, char *line, int size)
{
	char whole[PATH_MAX + 128];
	bool got;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s/%s", folder, path, name);
	file = fopen(whole, "re");
	if (!file)
		return false;
	got = fgets(line, size, file);
	fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

/* cgroup.events has a line for each thing that may be so. */
static bool has_event(const char *folder, const char *path, const char *event)
{
	char whole[PATH_MAX + 128], line[64];
	bool found = false;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s/cgroup.events", folder, path);
	file = fopen(whole, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, event);
	}
	if (file)
		fclose(file);
	return found;
}

bool inject_cgroup_is_frozen(uint32_t tgid, uint32_t thread)
{
	char path[PATH_MAX], state[32];

	if (find_path(tgid, thread, "freezer", path) &&
	    read_line(MOUNTED "/freezer", path, "freezer.state", state, sizeof(state)) &&
	    strcmp(state, "THAWED") != 0)
		return true;
	return find_path(tgid, thread, "", path) &&
	       (has_event(MOUNTED, path, "frozen 1") ||
		has_event(MOUNTED "/unified", path, "frozen 1"));
}

static uint64_t threads_left(const char *folder, char *path)
{
	uint64_t left = UINT64_MAX, most, now;
	char line[32];

	/* Up to the root, which has no such files. */
	for (;;) {
		char *slash = strrchr(path, '/');

		if (read_line(folder, path, "pids.max", line, sizeof(line)) &&
		    sscanf(line, "%" SCNu64, &most) == 1 &&
		    read_line(folder, path, "pids.current", line, sizeof(line)) &&
		    sscanf(line, "%" SCNu64, &now) == 1 && (now >= most || most - now < left))
			left = now >= most ? 0 : most - now;
		if (!slash)
			return left;
		*slash = '\0';
	}
}

uint64_t inject_cgroup_threads_left(uint32_t tgid, uint32_t thread)
{
	char path[PATH_MAX];

	if (find_path(tgid, thread, "pids", path))
		return threads_left(MOUNTED "/pids", path);
	return find_path(tgid, thread, "", path) ? threads_left(MOUNTED, path) : UINT64_MAX;
}
