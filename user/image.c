/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "image.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debug_file.h"
#include "log.h"

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

/* A file whose symbols cannot be read is as one without, but for lack of memory. */
static int note_symbols(const struct image *image, int err)
{
	if (err == -EFBIG)
		log_warn("%s: its symbol table is too large (more than %u MiB, or 4 Mi functions): "
			 "not read; name the step as PATH+0xADDR",
			 image->path, ELF_SECTION_BYTES_MAX >> 20);
	return err == -ENOMEM ? err : 0;
}

static int read_debug_symbols(struct image *image, uint32_t tgid, const char *const *symbol_files,
			      size_t count)
{
	struct elf_symbols symbols;
	int err;

	image->debug_fd =
		debug_file_find(image->elf, tgid, image->path, symbol_files, count, &image->debug);
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

int image_read(struct image *image, uint32_t tgid, const char *const *symbol_files, size_t count)
{
	int err;

	if (image->read)
		return 0;
	image->read = true;
	err = elf_fdes_read(&image->fdes, image->elf);
	if (err == -ENOMEM)
		return err;
	err = elf_symbols_read(&image->symbols, image->elf);
	err = note_symbols(image, err);
	if (err)
		return err;
	if (image->symbols.complete)
		return 0;
	return read_debug_symbols(image, tgid, symbol_files, count);
}

int image_extent(const struct image *image, uint64_t address, struct code_range *range)
{
	const struct elf_symbol *symbol = elf_symbols_around(&image->symbols, address);
	struct elf_fde fde;

	if (symbol) {
		*range = (struct code_range){symbol->address, symbol->size};
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
