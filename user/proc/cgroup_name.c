/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/cgroup_name.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "proc/cgroup.h"
#include "proc/open.h"

/* Folders that are looked at for an id; a big machine has some thousand. */
#define FOLDERS_MAX 20000

struct search {
	uint64_t id;
	uint32_t folders;
	char path[PATH_MAX];
};

static void keep_end(char *name, size_t size, const char *path)
{
	const char *from = path, *slash;
	size_t length = strlen(path);

	if (length >= size) {
		from = path + length - size + 1;
		slash = strchr(from, '/');
		from = slash && slash[1] ? slash : from;
	}
	snprintf(name, size, "%s", from);
}

/* "0::/path" of the unified hierarchy, "4:cpu,cpuacct:/path" of the other. */
static const char *path_of(char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return NULL;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	return !controllers[1] || text_list_has(controllers + 1, ',', "cpu") ? path : NULL;
}

void cgroup_name_of_process(uint32_t tgid, char *name, size_t size)
{
	FILE *file = proc_fopen((struct proc_ref){tgid, 0}, "cgroup");
	char line[4096];

	*name = '\0';
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		const char *path = path_of(line);

		if (path && (!*name || !strcmp(name, "/")))
			keep_end(name, size, path);
	}
	fclose(file);
}

/* Appends a name to the path of a folder; returns the length before, 0: no room. */
static size_t enter(struct search *search, const char *name)
{
	size_t length = strlen(search->path);
	size_t room = sizeof(search->path) - length;

	if ((size_t)snprintf(search->path + length, room, "/%s", name) < room)
		return length;
	search->path[length] = '\0';
	return 0;
}

/* Whether the cgroup is below the folder in the path, which is then its own. */
static bool is_below(struct search *search)
{
	DIR *folder = opendir(search->path);
	bool is_found = false;
	struct dirent *entry;
	struct stat stat;
	size_t length;

	while (folder && !is_found && search->folders < FOLDERS_MAX && (entry = readdir(folder))) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.' ||
		    fstatat(dirfd(folder), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW))
			continue;
		length = enter(search, entry->d_name);
		if (!length)
			continue;
		search->folders++;
		is_found = stat.st_ino == search->id || is_below(search);
		if (!is_found)
			search->path[length] = '\0';
	}
	if (folder)
		closedir(folder);
	return is_found;
}

void cgroup_name_find(FILE *mounts, uint64_t id, char *name, size_t size)
{
	struct search search = {.id = id};
	size_t top;

	*name = '\0';
	if (!cgroup_v2_folder(mounts, search.path))
		return;
	top = strlen(search.path);
	if (is_below(&search))
		keep_end(name, size, search.path + top);
}

void cgroup_name_of_id(uint64_t id, char *name, size_t size)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");

	*name = '\0';
	if (!mounts)
		return;
	cgroup_name_find(mounts, id, name, size);
	fclose(mounts);
}
