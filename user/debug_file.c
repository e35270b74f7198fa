/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "debug_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "log.h"
#include "regular_file.h"

#define DEBUG_FOLDER "/usr/lib/debug"

/* More takes longer than it is worth; a sparse file has any size. */
#define CHECKSUM_BYTES_MAX (1u << 30)

struct search {
	struct elf_file *file;
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t id_size;
	uint32_t tgid;
	struct elf_file *debug;
	int fd; /* of debug */
};

static int open_elf(const char *path, struct elf_file **elf, int *fd)
{
	struct stat status;
	int err;

	*fd = regular_file_open(path, &status);
	if (*fd < 0)
		return *fd;
	err = elf_file__open(elf, *fd);
	if (err) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

static bool has_build_id(const struct elf_file *elf, const uint8_t *id, size_t size)
{
	uint8_t other[ELF_BUILD_ID_MAX];

	return size && elf_file__build_id(elf, other) == size && !memcmp(id, other, size);
}

static bool has_checksum(int fd, uint32_t wanted)
{
	uint8_t block[65536];
	struct stat status;
	uint32_t sum = 0;
	off_t at = 0;
	ssize_t got = 0;

	if (fstat(fd, &status) || status.st_size > CHECKSUM_BYTES_MAX)
		return false;
	while (at <= CHECKSUM_BYTES_MAX && (got = pread(fd, block, sizeof(block), at)) > 0) {
		sum = crc32(sum, block, got);
		at += got;
	}
	return !got && sum == wanted;
}

/*
 * Takes the file at path if it belongs to ours: by build-id, else, where ours has none, by the
 * checksum beside its name.
 */
static bool try_file(struct search *search, const char *path, const uint32_t *checksum)
{
	struct elf_file *elf = NULL;
	bool fits;
	int fd;

	if (open_elf(path, &elf, &fd))
		return false;
	if (search->id_size)
		fits = has_build_id(elf, search->id, search->id_size);
	else
		fits = checksum && has_checksum(fd, *checksum);
	if (!fits) {
		elf_file__free(elf);
		close(fd);
		return false;
	}
	search->debug = elf;
	search->fd = fd;
	return true;
}

/* In the root of the process first: a container brings its own debug files. */
static bool try_both_roots(struct search *search, const char *path, const uint32_t *checksum)
{
	char rooted[PATH_MAX];

	if (snprintf(rooted, sizeof(rooted), "/proc/%u/root%s", search->tgid, path) <
		    (int)sizeof(rooted) &&
	    try_file(search, rooted, checksum))
		return true;
	return try_file(search, path, checksum);
}

static bool try_build_id(struct search *search)
{
	char path[sizeof(DEBUG_FOLDER) + ELF_BUILD_ID_MAX * 2 + 32];
	int at;

	if (search->id_size < 2)
		return false;
	at = snprintf(path, sizeof(path), DEBUG_FOLDER "/.build-id/%02x/", search->id[0]);
	for (size_t i = 1; i < search->id_size; i++)
		at += snprintf(path + at, sizeof(path) - at, "%02x", search->id[i]);
	snprintf(path + at, sizeof(path) - at, ".debug");
	return try_both_roots(search, path, NULL);
}

/* A plain name, no path: it comes from the file. */
static bool read_link(struct elf_file *file, char name[NAME_MAX + 1], uint32_t *checksum)
{
	struct elf_section section;
	size_t size;

	if (elf_file__section(file, ".gnu_debuglink", &section) || !section.data)
		return false;
	size = strnlen((const char *)section.data, section.size);
	if (!size || size > NAME_MAX || size == section.size || memchr(section.data, '/', size))
		return false;
	memcpy(name, section.data, size + 1);
	size = (size + 4) & ~(size_t)3;
	if (section.size < size + sizeof(*checksum))
		return false;
	memcpy(checksum, section.data + size, sizeof(*checksum));
	return true;
}

static bool try_link(struct search *search, const char *file_path)
{
	static const char *const places[][2] = {{"", "/"}, {"", "/.debug/"}, {DEBUG_FOLDER, "/"}};
	char name[NAME_MAX + 1], path[PATH_MAX];
	const char *slash = strrchr(file_path, '/');
	uint32_t checksum;

	if (!slash || slash - file_path >= PATH_MAX || !read_link(search->file, name, &checksum))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (snprintf(path, sizeof(path), "%s%.*s%s%s", places[i][0],
			     (int)(slash - file_path), file_path, places[i][1],
			     name) >= (int)sizeof(path))
			continue;
		if (try_both_roots(search, path, &checksum))
			return true;
	}
	return false;
}

int debug_file_find(struct elf_file *file, uint32_t tgid, const char *path,
		    const char *const *symbol_files, size_t count, struct elf_file **debug)
{
	struct search search = {.file = file, .tgid = tgid};
	bool found = false;

	search.id_size = elf_file__build_id(file, search.id);
	for (size_t i = 0; i < count && search.id_size && !found; i++)
		found = try_file(&search, symbol_files[i], NULL);
	if (!found && !try_build_id(&search) && !try_link(&search, path))
		return -ENOENT;
	*debug = search.debug;
	return search.fd;
}

int debug_file_check(const char *path)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	struct elf_section section;
	struct elf_file *elf = NULL;
	int fd, err;

	err = open_elf(path, &elf, &fd);
	if (err) {
		log_err("--symbols %s: %s", path, elf_file_strerror(err));
		return err == -ENOMEM ? err : -EINVAL;
	}
	if (!elf_file__build_id(elf, id)) {
		log_err("--symbols %s: has no build-id, so it cannot be told what it belongs to",
			path);
		err = -EINVAL;
	} else if (elf_file__section_of_type(elf, SHT_SYMTAB, &section)) {
		log_err("--symbols %s: has no symbol table", path);
		err = -EINVAL;
	}
	elf_file__free(elf);
	close(fd);
	return err;
}

bool debug_file_fits(const char *path, const struct elf_file *file)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	struct elf_file *elf = NULL;
	size_t size = elf_file__build_id(file, id);
	bool fits;
	int fd;

	if (open_elf(path, &elf, &fd))
		return false;
	fits = has_build_id(elf, id, size);
	elf_file__free(elf);
	close(fd);
	return fits;
}
