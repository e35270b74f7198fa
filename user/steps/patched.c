/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/patched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "proc/memory.h"
#include "proc/process.h"

#define INT3	   0xcc
#define CALL	   0xe8
#define BRK	   0xd4200000u /* arm64, with any number */
#define BRK_NUMBER 0x001fffe0u

/* Bytes of a nop with a probe on it that may be another instruction; 0: it is none. */
static size_t nop5_bytes(const uint8_t *code, size_t size)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	size_t bytes = min_u64(size, sizeof(nop5));

	/* It may be cut off where no more is compared. */
	return !memcmp(code, nop5, bytes) ? bytes : 0;
}

static bool differs_x86(const uint8_t *memory, const uint8_t *file, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		size_t nop = nop5_bytes(file + i, size - i);

		/* While the kernel changes it, there is a breakpoint before the rest. */
		if (nop && (memory[i] == CALL || memory[i] == INT3))
			i += nop - 1;
		else if (memory[i] != file[i] && memory[i] != INT3)
			return true;
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

bool code_is_patched(struct memory *memory, uint32_t tgid, enum fbt_arch arch, uint64_t address,
		     int fd, uint64_t offset, size_t size)
{
	struct memory_part part = {.address = address, .size = (uint32_t)size};
	struct proc_ref process = {.tgid = processes_live_thread(tgid)};
	uint8_t file[PATCHED_BYTES];
	ssize_t got = pread(fd, file, min_u64(size, sizeof(file)), (off_t)offset);

	return got > 0 && !memory__read(memory, process, &part, 1) &&
	       code_differs(arch, part.data, file, min_u64((uint64_t)got, part.got));
}

/* Code that is compared: at file offsets, all of it with one read of the memory. */
struct places {
	uint64_t offsets[MEMORY_PARTS];
	struct memory_part parts[MEMORY_PARTS];
	size_t count;
};

/*
 * A file has several mappings of its code, once a page of it was made writable; all have the same
 * distance from the addresses in the file.
 */
static void add_place(struct places *places, const struct image *image,
		      const struct mapping *mapping, uint64_t offset, uint64_t size)
{
	uint64_t begin, address;

	if (places->count == MEMORY_PARTS ||
	    elf_file__mapped_address(image->elf, mapping->offset, &begin) ||
	    elf_file__code_address(image->elf, offset, &address))
		return;
	places->offsets[places->count] = offset;
	places->parts[places->count++] = (struct memory_part){
		.address = address - begin + mapping->start,
		.size = (uint32_t)min_u64(size, PATCHED_BYTES),
	};
}

static void find_places(struct places *places, const struct image *image,
			const struct mapping *mapping, const struct step_function *function)
{
	bool is_x86 = elf_file__arch(image->elf) == FBT_ARCH_X86_64;
	uint64_t entry = 0, size;

	if (elf_file__offset(image->elf, function->address, true, &entry) ||
	    entry > function->begin_offset)
		return;
	size = function->begin_offset - entry + PATCHED_PROBED;
	/* What follows a short function is code of others. */
	if (function->size && size > function->size)
		size = function->size;
	add_place(places, image, mapping, entry, size);
	vec_for_each (offset, &function->exit_offsets)
		add_place(places, image, mapping, *offset, is_x86 ? 1 : 4);
}

static bool differ(const struct places *places, const struct image *image)
{
	uint8_t file[PATCHED_BYTES];

	for (size_t i = 0; i < places->count; i++) {
		const struct memory_part *part = &places->parts[i];
		ssize_t got = pread(image->fd, file, part->size, (off_t)places->offsets[i]);

		if (got > 0 && code_differs(elf_file__arch(image->elf), part->data, file,
					    min_u64((uint64_t)got, part->got)))
			return true;
	}
	return false;
}

/* Whether code of a function is, where its probes are to be. */
static bool is_patched(uint32_t tgid, const struct image *image, const struct mapping *mapping,
		       const struct step_function *function)
{
	struct proc_ref process = {.tgid = processes_live_thread(tgid)};
	struct places *places = calloc(1, sizeof(*places));
	struct memory *memory = memory__new();
	bool is = false;

	if (places && memory) {
		find_places(places, image, mapping, function);
		is = !memory__read(memory, process, places->parts, places->count) &&
		     differ(places, image);
	}
	memory__free(memory);
	free(places);
	return is;
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
