/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/eh_frame.h"

#define TABLE_ENTRY_BYTES 8
#define TABLE_BYTES_MAX	  (64u << 20) /* 8 Mi functions, twice the limit for symbols */
/* Enough of an FDE to see how its instructions begin. */
#define FDE_BYTES_MAX 64

int elf_fdes_read(struct elf_fdes *fdes, const struct elf_file *file)
{
	uint8_t head[4 + 8 + 8];
	struct eh_reader reader = {.data = head};
	uint64_t ignored, count;
	Elf64_Phdr segment;
	size_t size;

	memset(fdes, 0, sizeof(*fdes));
	if (elf_file__segment(file, PT_GNU_EH_FRAME, &segment))
		return 0;
	size = segment.p_filesz < sizeof(head) ? segment.p_filesz : sizeof(head);
	if (size < 4 || elf_file__read(file, segment.p_vaddr, head, size))
		return -EBADMSG;
	reader.left = size - 4;
	reader.data += 4;
	reader.address = segment.p_vaddr + 4;
	if (head[0] != 1 || head[2] == PE_OMIT || head[3] != (PE_DATAREL | PE_SDATA4))
		return 0;
	if (!eh_take_encoded(&reader, head[1], &ignored) ||
	    !eh_take_encoded(&reader, head[2], &count))
		return -EBADMSG;
	size = segment.p_filesz - (reader.data - head);
	if (count > size / TABLE_ENTRY_BYTES || count > TABLE_BYTES_MAX / TABLE_ENTRY_BYTES)
		return -EBADMSG;
	if (!count)
		return 0;
	fdes->table = malloc(count * TABLE_ENTRY_BYTES);
	if (!fdes->table)
		return -ENOMEM;
	if (elf_file__read(file, reader.address, fdes->table, count * TABLE_ENTRY_BYTES)) {
		elf_fdes_clear(fdes);
		return -EBADMSG;
	}
	fdes->count = count;
	fdes->base = segment.p_vaddr;
	return 0;
}

void elf_fdes_clear(struct elf_fdes *fdes)
{
	free(fdes->table);
	memset(fdes, 0, sizeof(*fdes));
}

static uint64_t entry_value(const struct elf_fdes *fdes, size_t index, size_t field)
{
	int32_t value;

	memcpy(&value, fdes->table + index * TABLE_ENTRY_BYTES + field * sizeof(value),
	       sizeof(value));
	return fdes->base + (int64_t)value;
}

/*
 * Whether an FDE is of a piece that a compiler split off. Such a piece is entered with the frame in
 * place, so its unwind instructions begin with the place of the frame. A function begins with the
 * state that its CIE describes.
 */
static bool begins_with_frame(struct eh_reader instructions)
{
	uint8_t operation = 0;

	/* DW_CFA_def_cfa, _def_cfa_register, _def_cfa_offset, _def_cfa_expression */
	return eh_take(&instructions, &operation, 1) && operation >= 0x0c && operation <= 0x0f;
}

static int read_fde(const struct elf_file *file, uint64_t address, struct elf_fde *fde)
{
	uint8_t data[FDE_BYTES_MAX];
	struct eh_fde entry;
	struct eh_cie cie;
	int err = eh_fde_read(&entry, &cie, file, address, data, sizeof(data));

	if (err)
		return err;
	fde->start = entry.start;
	fde->size = entry.size;
	fde->has_frame = begins_with_frame(entry.instructions);
	return 0;
}

int elf_fdes_find(const struct elf_fdes *fdes, const struct elf_file *file, uint64_t address,
		  struct elf_fde *fde)
{
	size_t after = first_index(i, fdes->count, entry_value(fdes, i, 0) > address);
	int err;

	memset(fde, 0, sizeof(*fde));
	if (!after)
		return -ENOENT;
	err = read_fde(file, entry_value(fdes, after - 1, 1), fde);
	if (err)
		return err;
	if (fde->start != entry_value(fdes, after - 1, 0))
		return -EBADMSG;
	return address - fde->start < fde->size ? 0 : -ENOENT;
}
