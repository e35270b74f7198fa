/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int inject_mapping_parse(struct inject_mapping *mapping, const char *line)
{
	char mode[5];
	int err;

	memset(mapping, 0, sizeof(*mapping));
	if (sscanf(line, "%*x-%*x %4s %" SCNx64, mode, &mapping->offset) != 2)
		return -EBADMSG;
	err = mapping_parse(&mapping->file, line);
	if (err)
		return err;
	if (!mapping->file.path)
		return -ENOENT;
	mapping->readable = mode[0] == 'r';
	mapping->writable = mode[1] == 'w';
	mapping->shared = mode[3] == 's';
	return 0;
}

static int add_line(inject_mapping_vec *maps, const char *line)
{
	struct inject_mapping mapping;
	int err = inject_mapping_parse(&mapping, line);

	if (err)
		return err == -ENOMEM ? err : 0;
	err = vec_push(maps, mapping);
	if (err)
		free(mapping.file.path);
	return err;
}

int inject_maps_read(inject_mapping_vec *maps, uint32_t tgid, uint32_t thread)
{
	size_t capacity = 0;
	bool any = false;
	char *line = NULL, path[64];
	FILE *file;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/maps", tgid, thread);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	while (!err && getline(&line, &capacity, file) > 0) {
		any = true;
		err = add_line(maps, line);
		errno = 0;
	}
	if (!err && ferror(file))
		err = errno ? -errno : -EIO;
	if (!err && !any)
		err = -ESRCH;
	free(line);
	fclose(file);
	return err;
}

void inject_maps_free(inject_mapping_vec *maps)
{
	vec_for_each (mapping, maps)
		free(mapping->file.path);
	vec_free(maps);
}

const char *inject_mapping_name(const struct inject_mapping *mapping)
{
	const char *slash = strrchr(mapping->file.path, '/');

	return slash ? slash + 1 : mapping->file.path;
}
