/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/selector.h"

#include <stdio.h>
#include <string.h>

#include "proc/open.h"

/* As docker and podman show ids. */
#define CONTAINER_ID_MIN 12
/* Names of processes are cut off by the kernel. */
#define COMM_MAX 15

/* The path of a line "NUMBER:CONTROLLERS:PATH", and its length; NULL: there is none. */
static const char *path_of_line(const char *line, size_t *length)
{
	size_t whole = strcspn(line, "\n");
	const char *end = line + whole, *colon = memchr(line, ':', whole);

	colon = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
	if (!colon)
		return NULL;
	*length = (size_t)(end - colon - 1);
	return colon + 1;
}

/* Calls of match for each path; wanted is passed on. */
static bool any_path(const char *lines,
		     bool (*match)(const char *path, size_t length, const char *wanted),
		     const char *wanted)
{
	while (*lines) {
		size_t length = 0;
		const char *path = path_of_line(lines, &length);

		if (path && match(path, length, wanted))
			return true;
		lines += strcspn(lines, "\n");
		lines += *lines == '\n';
	}
	return false;
}

static bool is_below(const char *path, size_t length, const char *wanted)
{
	size_t size;

	while (*wanted == '/')
		wanted++;
	size = strlen(wanted);
	while (size && wanted[size - 1] == '/')
		size--;
	if (length && *path == '/')
		path++, length--;
	/* The root is everything. */
	return !size || (length >= size && !memcmp(path, wanted, size) &&
			 (length == size || path[size] == '/'));
}

bool cgroups_have_path(const char *lines, const char *path)
{
	return *lines && any_path(lines, is_below, path);
}

/* Calls match for each component of a path. */
static bool any_part(const char *path, size_t length,
		     bool (*match)(const char *part, size_t length, const char *wanted),
		     const char *wanted)
{
	const char *end = path + length;

	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t size = (size_t)((slash ? slash : end) - path);

		if (size && match(path, size, wanted))
			return true;
		path += size + 1;
	}
	return false;
}

/*
 * "ID", "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID.scope". Not
 * "libpod-conmon-ID.scope": that has the container's monitor.
 */
static bool is_container_part(const char *part, size_t length, const char *id)
{
	static const char scope[] = ".scope", monitor[] = "conmon";
	size_t size = strlen(id), suffix = sizeof(scope) - 1;
	const char *dash;

	if (length == size && !memcmp(part, id, size))
		return true;
	if (length > suffix && !memcmp(part + length - suffix, scope, suffix))
		length -= suffix;
	dash = memrchr(part, '-', length);
	if (dash && dash - part >= (ptrdiff_t)strlen(monitor) &&
	    !memcmp(dash - strlen(monitor), monitor, strlen(monitor)))
		return false;
	if (dash) {
		length -= (size_t)(dash + 1 - part);
		part = dash + 1;
	}
	return size >= CONTAINER_ID_MIN && length >= size && !memcmp(part, id, size);
}

static bool has_container(const char *path, size_t length, const char *id)
{
	return any_part(path, length, is_container_part, id);
}

bool cgroups_have_container(const char *lines, const char *id)
{
	return *id && any_path(lines, has_container, id);
}

static bool is_unit_part(const char *part, size_t length, const char *unit)
{
	static const char service[] = ".service";
	size_t size = strlen(unit), suffix = sizeof(service) - 1;

	if (length == size && !memcmp(part, unit, size))
		return true;
	/* A dot in the name may be that of a version: vllm-llama3.1 is a service. */
	return length == size + suffix && !memcmp(part, unit, size) &&
	       !memcmp(part + size, service, suffix);
}

/*
 * The length of a path down to user.slice: below it users make cgroups of any name (systemd
 * delegates user@UID.service to them).
 */
static size_t system_part(const char *path, size_t length)
{
	static const char users[] = "user.slice";
	const size_t size = sizeof(users) - 1;

	for (size_t at = 0; at + size <= length; at++) {
		if ((!at || path[at - 1] == '/') && !memcmp(path + at, users, size) &&
		    (at + size == length || path[at + size] == '/'))
			return at + size;
	}
	return length;
}

static bool has_unit(const char *path, size_t length, const char *unit)
{
	return any_part(path, system_part(path, length), is_unit_part, unit);
}

bool cgroups_have_unit(const char *lines, const char *unit)
{
	return *unit && any_path(lines, has_unit, unit);
}

bool selector_needs_cgroups(const struct options *options)
{
	const struct option_watch *watch = &options->watch;

	return watch->cgroups.count || watch->containers.count || watch->units.count;
}

enum selected selector_match(const struct options *options, const struct candidate *candidate)
{
	const struct option_watch *watch = &options->watch;

	if (options_name_process(options, candidate->tgid))
		return SELECTED_PROCESS;
	vec_for_each (comm, &watch->comms) {
		if (!strncmp(*comm, candidate->comm, COMM_MAX))
			return SELECTED_PROCESS;
	}
	vec_for_each (path, &watch->cgroups) {
		if (cgroups_have_path(candidate->cgroups, *path))
			return SELECTED_GROUP;
	}
	vec_for_each (id, &watch->containers) {
		if (cgroups_have_container(candidate->cgroups, *id))
			return SELECTED_GROUP;
	}
	vec_for_each (unit, &watch->units) {
		if (cgroups_have_unit(candidate->cgroups, *unit))
			return SELECTED_GROUP;
	}
	return SELECTED_NOT;
}

bool candidate_read(struct candidate *candidate, bool with_cgroups)
{
	const struct proc_ref ref = {.tgid = candidate->tgid};
	size_t size = 0;
	FILE *file;

	candidate->cgroups[0] = '\0';
	if (!proc_comm(ref, candidate->comm, sizeof(candidate->comm)))
		return false;
	file = with_cgroups ? proc_fopen(ref, "cgroup") : NULL;
	if (file) {
		size = fread(candidate->cgroups, 1, sizeof(candidate->cgroups) - 1, file);
		fclose(file);
	}
	candidate->cgroups[size] = '\0';
	return true;
}

const struct selected_process *selected_find(const selected_vec *found, uint32_t tgid)
{
	size_t index = vec_lower_bound(found, item->tgid, tgid);

	return index < found->count && found->items[index].tgid == tgid ? &found->items[index]
									: NULL;
}

void selected_mark(selected_vec *found, const process_vec *processes)
{
	vec_for_each (selected, found) {
		uint32_t tgid = processes_parent(processes, selected->tgid);

		/* The list is not a snapshot and may contain a loop, so the height is limited. */
		for (size_t height = 0; tgid && height < processes->count; height++) {
			struct selected_process *above =
				(struct selected_process *)selected_find(found, tgid);

			if (above && above != selected) {
				above->is_above = true;
				selected->is_below = true;
				selected->top_tgid = tgid;
			}
			tgid = processes_parent(processes, tgid);
		}
	}
}
