/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf/symbol_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "proc/open.h"

bool symbol_file_is_folder(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

static int open_file(const char *path, const uint8_t *id, size_t id_size, struct elf_file **elf)
{
	uint8_t other[ELF_BUILD_ID_MAX];
	struct stat status;
	int fd = regular_file_open(path, &status), err;

	if (fd < 0)
		return fd;
	err = elf_file__open(elf, fd);
	if (!err && (elf_file__build_id(*elf, other) != id_size || memcmp(id, other, id_size))) {
		elf_file__free(*elf);
		err = -ESTALE;
	}
	if (!err)
		return fd;
	close(fd);
	*elf = NULL;
	return err;
}

/* forms: before, between the first byte and the others, after them. */
static bool make_path(char path[PATH_MAX], const char *folder, const char *const form[3],
		      const uint8_t *id, size_t id_size)
{
	int at = snprintf(path, PATH_MAX, "%s/%s%02x%s", folder, form[0], id[0], form[1]);

	for (size_t i = 1; i < id_size && at < PATH_MAX; i++)
		at += snprintf(path + at, PATH_MAX - at, "%02x", id[i]);
	if (at < PATH_MAX)
		at += snprintf(path + at, PATH_MAX - at, "%s", form[2]);
	return at < PATH_MAX;
}

static int open_in_folder(const char *folder, const uint8_t *id, size_t id_size,
			  struct elf_file **elf)
{
	static const char *const forms[][3] = {
		{".build-id/", "/", ".debug"}, {"", "/", ".debug"}, {"", "", "/debuginfo"}};
	char path[PATH_MAX];
	int fd = -ENOENT;

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms) && fd == -ENOENT; i++)
		fd = make_path(path, folder, forms[i], id, id_size)
			     ? open_file(path, id, id_size, elf)
			     : -ENAMETOOLONG;
	if (fd == -ESTALE)
		log_warn("--symbols %s: not used: %s has another build-id than its name says",
			 folder, path);
	return fd;
}

int symbol_file_open(const char *path, const uint8_t *id, size_t id_size, struct elf_file **elf)
{
	*elf = NULL;
	if (id_size < 2)
		return -ENOENT;
	return symbol_file_is_folder(path) ? open_in_folder(path, id, id_size, elf)
					   : open_file(path, id, id_size, elf);
}
