/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/patched.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "proc/memory.h"
#include "proc/process.h"

#define INT3	   0xcc
#define CALL	   0xe8
#define BRK	   0xd4200000u /* arm64, with any number */
#define BRK_NUMBER 0x001fffe0u

static bool is_nop5(const uint8_t *code, size_t size)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	return size >= sizeof(nop5) && !memcmp(code, nop5, sizeof(nop5));
}

static bool differs_x86(const uint8_t *memory, const uint8_t *file, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (memory[i] == file[i] || memory[i] == INT3)
			continue;
		if (memory[i] != CALL || !is_nop5(file + i, size - i))
			return true;
		i += 4;
	}
	return false;
}

static bool differs_arm64(const uint8_t *memory, const uint8_t *file, size_t size)
{
	for (size_t i = 0; i + 4 <= size; i += 4) {
		uint32_t word;

		memcpy(&word, memory + i, sizeof(word));
		if (memcmp(memory + i, file + i, sizeof(word)) != 0 && (word & ~BRK_NUMBER) != BRK)
			return true;
	}
	return false;
}

bool code_differs(enum fbt_arch arch, const uint8_t *memory, const uint8_t *file, size_t size)
{
	return arch == FBT_ARCH_X86_64 ? differs_x86(memory, file, size)
				       : differs_arm64(memory, file, size);
}

bool code_is_patched(uint32_t tgid, enum fbt_arch arch, uint64_t address, int fd, uint64_t offset,
		     size_t size)
{
	struct memory_part part = {.address = address, .size = (uint32_t)size};
	struct proc_ref process = {.tgid = processes_live_thread(tgid)};
	struct memory *memory = memory__new();
	uint8_t file[PATCHED_BYTES];
	bool is_patched = false;
	ssize_t got;

	if (!memory)
		return false;
	got = pread(fd, file, size < sizeof(file) ? size : sizeof(file), (off_t)offset);
	if (got > 0 && !memory__read(memory, process, &part, 1))
		is_patched = code_differs(arch, part.data, file, min_u64((uint64_t)got, part.got));
	memory__free(memory);
	return is_patched;
}

/*
 * Code of the image at an offset of its file. A file has several mappings of its code, once a page
 * of it was made writable; all have the same distance from the addresses in the file.
 */
static bool is_patched_at(uint32_t tgid, const struct image *image, const struct mapping *mapping,
			  uint64_t offset, uint64_t size)
{
	uint64_t begin, address;

	if (elf_file__mapped_address(image->elf, mapping->offset, &begin) ||
	    elf_file__code_address(image->elf, offset, &address))
		return false;
	return code_is_patched(tgid, elf_file__arch(image->elf), address - begin + mapping->start,
			       image->fd, offset, min_u64(size, PATCHED_BYTES));
}

/* Whether code of a function is, where its probes are to be. */
static bool is_patched(uint32_t tgid, const struct image *image, const struct mapping *mapping,
		       const struct step_function *function)
{
	uint64_t entry = 0, size;

	if (elf_file__offset(image->elf, function->address, true, &entry) ||
	    entry > function->begin_offset)
		return false;
	size = function->begin_offset - entry + PATCHED_PROBED;
	/* What follows a short function is code of others. */
	if (function->size && size > function->size)
		size = function->size;
	if (is_patched_at(tgid, image, mapping, entry, size))
		return true;
	vec_for_each (offset, &function->exit_offsets) {
		if (is_patched_at(tgid, image, mapping, *offset, 1))
			return true;
	}
	return false;
}

int resolve_function_in(struct step_function **result, uint32_t tgid, const struct image *image,
			const struct mapping *mapping, const struct elf_symbol *symbol,
			uint64_t address, bool uretprobe, char reason[RESOLVE_REASON_BYTES])
{
	int err = resolve_function(result, image, symbol, address, uretprobe, reason);

	if (err || !is_patched(tgid, image, mapping, *result))
		return err;
	step_function_free(*result);
	*result = NULL;
	snprintf(reason, RESOLVE_REASON_BYTES,
		 "its code in memory is not that of the file: something has hooked it, and a probe "
		 "could crash the process");
	return -EFAULT;
}
