/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "proc/open.h"
#include "elf/symbol_files.h"

#define DEBUG_FOLDER "/usr/lib/debug"

/* Debug files. */

struct search {
	struct elf_file *file;
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t id_size;
	uint32_t tgid;
	uint64_t bytes_left; /* of which checksums may be made */
	bool has_owner;
	uid_t owner; /* of the mapped file */
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

/* A sparse file may have any size, and grow meanwhile. */
static bool has_checksum(struct search *search, int fd, uint32_t wanted)
{
	uint8_t block[65536];
	struct stat status;
	uint64_t most = search->bytes_left;
	uint32_t sum = 0;
	off_t at = 0;
	ssize_t got = 0;

	if (fstat(fd, &status) || (uint64_t)status.st_size > most)
		return false;
	search->bytes_left -= (uint64_t)status.st_size;
	while ((uint64_t)at <= most && (got = pread(fd, block, sizeof(block), at)) > 0) {
		sum = crc32(sum, block, got);
		at += got;
	}
	return !got && sum == wanted;
}

/*
 * Takes the file at path if it matches the mapped file: by build-id or, if the mapped file has
 * none, by the checksum in .gnu_debuglink.
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
		fits = checksum && has_checksum(search, fd, *checksum);
	if (!fits) {
		elf_file__free(elf);
		close(fd);
		return false;
	}
	search->debug = elf;
	search->fd = fd;
	return true;
}

/*
 * Whether nobody else may have written it: a process may show any files in its own root, beside a
 * library that others map too.
 */
static bool is_of_owner(struct search *search)
{
	struct stat status;

	if (!fstat(search->fd, &status) &&
	    (!status.st_uid || (search->has_owner && status.st_uid == search->owner)))
		return true;
	elf_file__free(search->debug);
	search->debug = NULL;
	close(search->fd);
	search->fd = -1;
	return false;
}

/* Tries the root of the process first, because a container has its own debug files. */
static bool try_both_roots(struct search *search, const char *path, const uint32_t *checksum)
{
	char rooted[PATH_MAX];

	if (proc_root_path(rooted, sizeof(rooted), search->tgid, path) &&
	    try_file(search, rooted, checksum) && is_of_owner(search))
		return true;
	return try_file(search, path, checksum) && is_of_owner(search);
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

/*
 * Reads .gnu_debuglink: a name, its end, up to three bytes of padding and the checksum. The name
 * must not be a path, and the section may have any size, because the file is untrusted.
 */
static bool read_link(const struct elf_file *file, char name[NAME_MAX + 1], uint32_t *checksum)
{
	char data[NAME_MAX + 4 + sizeof(*checksum)];
	struct elf_section section;
	size_t size, bytes;

	if (elf_file__find_section_named(file, ".gnu_debuglink", &section))
		return false;
	bytes = section.size < sizeof(data) ? section.size : sizeof(data);
	if (elf_file__read_section(file, &section, 0, data, bytes))
		return false;
	size = strnlen(data, bytes);
	if (!size || size > NAME_MAX || size == bytes || memchr(data, '/', size))
		return false;
	memcpy(name, data, size + 1);
	size = (size + 4) & ~(size_t)3;
	if (bytes < size + sizeof(*checksum))
		return false;
	memcpy(checksum, data + size, sizeof(*checksum));
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
		    const struct symbol_files *symbols, uint64_t checksum_bytes,
		    struct elf_file **debug, bool *is_given)
{
	struct search search = {.file = file, .tgid = tgid, .bytes_left = checksum_bytes};
	bool found = false;

	search.id_size = elf_file__build_id(file, search.id);
	search.has_owner = elf_file__owner(file, &search.owner);
	for (size_t i = 0; i < symbols->count && search.id_size && !found; i++) {
		search.fd = symbol_file_open(symbols->paths[i], search.id, search.id_size,
					     &search.debug);
		found = search.fd >= 0;
	}
	if (!found && !try_build_id(&search) && !try_link(&search, path))
		return -ENOENT;
	if (is_given)
		*is_given = found;
	*debug = search.debug;
	return search.fd;
}

int debug_file_check(const char *path, bool quiet)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	struct elf_section section;
	struct elf_file *elf = NULL;
	const char *reason = NULL;
	int fd, err;

	if (symbol_file_is_folder(path))
		return 0;
	err = open_elf(path, &elf, &fd);
	if (err)
		reason = elf_file_strerror(err);
	else if (!elf_file__build_id(elf, id))
		reason = "has no build-id, so it cannot be matched to a mapped file";
	else if (elf_file__section_of_type(elf, SHT_SYMTAB, &section))
		reason = "has no symbol table";
	if (reason && !quiet)
		log_err("--symbols %s: %s", path, reason);
	elf_file__free(elf);
	if (fd >= 0)
		close(fd);
	return reason && err != -ENOMEM ? -EINVAL : err;
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

/* The mapped file. */

int image_open(struct image *image, uint32_t tgid, const struct mapping *mapping)
{
	struct stat status;
	int fd;

	memset(image, 0, sizeof(*image));
	image->fd = image->debug_fd = -1;
	fd = mapping_open(tgid, mapping);
	if (fd < 0)
		return fd;
	image->fd = fd;
	if (fstat(fd, &status))
		return -errno;
	image->device = status.st_dev;
	image->inode = status.st_ino;
	image->path = strdup(mapping->path);
	if (!image->path)
		return -ENOMEM;
	return elf_file__open(&image->elf, fd);
}

void image_close(struct image *image)
{
	elf_symbols_clear(&image->symbols);
	elf_fdes_clear(&image->fdes);
	elf_file__free(image->debug);
	elf_file__free(image->elf);
	if (image->debug_fd >= 0)
		close(image->debug_fd);
	if (image->fd >= 0)
		close(image->fd);
	free(image->path);
	memset(image, 0, sizeof(*image));
	image->fd = image->debug_fd = -1;
}

/* If symbols cannot be read, the file counts as one without symbols. Passes on only -ENOMEM. */
static int note_symbols(const struct image *image, int err)
{
	if (err == -EFBIG && !image->quiet)
		log_warn("%s: symbol table not read: too large (more than %u MiB or 4 Mi "
			 "functions); name the step as PATH+0xADDR",
			 image->path, ELF_SECTION_BYTES_MAX >> 20);
	return err == -ENOMEM ? err : 0;
}

static int read_debug_symbols(struct image *image, uint32_t tgid, const char *const *symbol_files,
			      size_t count)
{
	struct elf_symbols symbols;
	int err;

	image->debug_fd = debug_file_find(
		image->elf, tgid, image->path, &(struct symbol_files){symbol_files, count},
		DEBUG_FILE_CHECKSUM_BYTES, &image->debug, &image->debug_is_given);
	if (image->debug_fd < 0)
		return 0;
	err = elf_symbols_read(&symbols, image->debug);
	if (err)
		return note_symbols(image, err);
	if (!symbols.count) {
		elf_symbols_clear(&symbols);
		return 0;
	}
	elf_symbols_clear(&image->symbols);
	image->symbols = symbols;
	return 0;
}

int image_read_extents(struct image *image)
{
	int err;

	if (image->read)
		return 0;
	image->read = true;
	err = elf_fdes_read(&image->fdes, image->elf);
	return err == -ENOMEM ? err : 0;
}

int image_read(struct image *image, uint32_t tgid, const char *const *symbol_files, size_t count)
{
	int err;

	if (image->read)
		return 0;
	err = image_read_extents(image);
	if (err)
		return err;
	err = elf_symbols_read(&image->symbols, image->elf);
	err = note_symbols(image, err);
	if (err)
		return err;
	if (image->symbols.complete)
		return 0;
	return read_debug_symbols(image, tgid, symbol_files, count);
}

/* Functions of Go are in no unwind table, though those of C beside them are. */
bool image_contradicts(const struct image *image, uint64_t address, uint64_t *most)
{
	struct elf_fde fde;

	*most = UINT64_MAX;
	if (!image->debug || image->debug_is_given || !image->fdes.count ||
	    elf_file__is_go(image->elf))
		return false;
	if (elf_fdes_find(&image->fdes, image->elf, address, &fde) || fde.start != address)
		return true;
	*most = fde.size;
	return false;
}

int image_extent(const struct image *image, uint64_t address, struct code_range *range)
{
	const struct elf_symbol *symbol = elf_symbols_around(&image->symbols, address);
	struct elf_fde fde;
	uint64_t most;

	if (symbol && !image_contradicts(image, symbol->address, &most)) {
		*range = (struct code_range){symbol->address, min_u64(symbol->size, most)};
		return 0;
	}
	if (elf_fdes_find(&image->fdes, image->elf, address, &fde))
		return -ENOENT;
	*range = (struct code_range){fde.start, fde.size};
	return 0;
}

bool image_has_frame(const struct image *image, uint64_t address)
{
	struct elf_fde fde;

	return !elf_fdes_find(&image->fdes, image->elf, address, &fde) && fde.has_frame;
}

uint64_t image_nearest(const struct image *image, uint64_t address)
{
	const struct elf_symbol *symbol = elf_symbols_before(&image->symbols, address);
	uint64_t start = 0;
	struct elf_fde fde;

	if (elf_fdes_find(&image->fdes, image->elf, address, &fde) != -EBADMSG)
		start = fde.start;
	return symbol && symbol->address > start ? symbol->address : start;
}

struct file_stamp file_stamp_of(int fd)
{
	struct statx file = {0};

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MTIME | STATX_SIZE, &file))
		return (struct file_stamp){0};
	return (struct file_stamp){
		.bytes = file.stx_size,
		.written_ns = (uint64_t)file.stx_mtime.tv_sec * NS_PER_S + file.stx_mtime.tv_nsec,
	};
}

bool file_stamps_are_equal(struct file_stamp a, struct file_stamp b)
{
	return a.bytes == b.bytes && a.written_ns == b.written_ns;
}
