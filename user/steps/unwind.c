/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/*
 * Pointer encodings of the Linux Standard Base: the low four bits are the format, the next three
 * the base.
 */
#define PE_ABSPTR  0x00
#define PE_UDATA2  0x02
#define PE_UDATA4  0x03
#define PE_UDATA8  0x04
#define PE_SDATA2  0x0a
#define PE_SDATA4  0x0b
#define PE_SDATA8  0x0c
#define PE_PCREL   0x10
#define PE_DATAREL 0x30
#define PE_OMIT	   0xff

#define TABLE_ENTRY_BYTES 8
#define TABLE_BYTES_MAX	  (64u << 20) /* 8 Mi functions, twice the limit for symbols */
/* Enough of a CIE to find the encoding of addresses in its FDEs. */
#define CIE_BYTES_MAX 256
#define FDE_BYTES_MAX 64

struct reader {
	const uint8_t *data;
	size_t left;
	uint64_t address; /* virtual address of data */
};

static bool take(struct reader *reader, void *value, size_t size)
{
	if (reader->left < size)
		return false;
	memcpy(value, reader->data, size);
	reader->data += size;
	reader->left -= size;
	reader->address += size;
	return true;
}

/* Reads up to size bytes at an address to data. 0 or -EBADMSG. */
static int open_reader(struct reader *reader, const struct elf_file *file, uint64_t address,
		       uint8_t *data, size_t size)
{
	uint64_t available = elf_file__available(file, address);

	*reader = (struct reader){data, available < size ? available : size, address};
	return elf_file__read(file, address, data, reader->left) ? -EBADMSG : 0;
}

/* Takes a value in a fixed-size format. The caller adds any base other than pc. */
static bool take_encoded(struct reader *reader, uint8_t encoding, uint64_t *value)
{
	uint64_t pc = encoding & PE_PCREL ? reader->address : 0;
	uint16_t half = 0;
	uint32_t word = 0;
	bool ok;

	switch (encoding & 0x0f) {
	case PE_UDATA2:
	case PE_SDATA2:
		ok = take(reader, &half, sizeof(half));
		*value = (encoding & 0x0f) == PE_SDATA2 ? (uint64_t)(int16_t)half : half;
		break;
	case PE_UDATA4:
	case PE_SDATA4:
		ok = take(reader, &word, sizeof(word));
		*value = (encoding & 0x0f) == PE_SDATA4 ? (uint64_t)(int32_t)word : word;
		break;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		ok = take(reader, value, sizeof(*value));
		break;
	default:
		return false;
	}
	*value += pc;
	return ok;
}

static bool take_leb128(struct reader *reader, uint64_t *value)
{
	unsigned int shift = 0;
	uint8_t byte = 0x80;

	*value = 0;
	while (byte & 0x80) {
		if (!take(reader, &byte, 1))
			return false;
		if (shift < 64)
			*value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	}
	return true;
}

int elf_fdes_read(struct elf_fdes *fdes, const struct elf_file *file)
{
	uint8_t head[4 + 8 + 8];
	struct reader reader = {.data = head};
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
	if (!take_encoded(&reader, head[1], &ignored) || !take_encoded(&reader, head[2], &count))
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

struct cie {
	uint8_t encoding;      /* how its FDEs write code addresses */
	bool has_augmentation; /* in its FDEs augmentation data, with its size, follows */
};

static int read_cie(const struct elf_file *file, uint64_t address, struct cie *cie)
{
	uint8_t data[CIE_BYTES_MAX];
	struct reader reader;
	uint32_t length, id;
	uint8_t version = 0, ignored;
	uint64_t number;
	const char *letters;

	if (open_reader(&reader, file, address, data, sizeof(data)) ||
	    !take(&reader, &length, sizeof(length)) || length == UINT32_MAX ||
	    !take(&reader, &id, sizeof(id)) || id || !take(&reader, &version, 1))
		return -EBADMSG;
	letters = (const char *)reader.data;
	if ((version != 1 && version != 3) || !memchr(letters, 0, reader.left))
		return -EBADMSG;
	cie->encoding = PE_ABSPTR;
	cie->has_augmentation = *letters == 'z';
	reader.left -= strlen(letters) + 1;
	reader.data += strlen(letters) + 1;
	if (*letters != 'z')
		return *letters ? -EBADMSG : 0;
	/* Alignment of code and data, return address register, size of the augmentation data. */
	for (int i = 0; i < 4; i++)
		if (!take_leb128(&reader, &number))
			return -EBADMSG;
	for (letters++; *letters && *letters != 'R'; letters++) {
		if (*letters == 'L' && !take(&reader, &ignored, 1))
			return -EBADMSG;
		if (*letters == 'P' &&
		    (!take(&reader, &ignored, 1) || !take_encoded(&reader, ignored, &number)))
			return -EBADMSG;
	}
	return *letters && !take(&reader, &cie->encoding, 1) ? -EBADMSG : 0;
}

/*
 * Whether an FDE is of a piece that a compiler split off. Such a piece is entered with the frame in
 * place, so its unwind instructions begin with the place of the frame. A function begins with the
 * state that its CIE describes.
 */
static bool begins_with_frame(struct reader *reader)
{
	uint8_t operation = 0;

	/* DW_CFA_def_cfa, _def_cfa_register, _def_cfa_offset, _def_cfa_expression */
	return take(reader, &operation, 1) && operation >= 0x0c && operation <= 0x0f;
}

static int read_fde(const struct elf_file *file, uint64_t address, struct elf_fde *fde)
{
	uint8_t data[FDE_BYTES_MAX];
	struct reader reader;
	uint32_t length, back;
	uint64_t skipped;
	struct cie cie;
	int err;

	if (open_reader(&reader, file, address, data, sizeof(data)) ||
	    !take(&reader, &length, sizeof(length)) || length < sizeof(back) ||
	    length == UINT32_MAX || !take(&reader, &back, sizeof(back)) || !back)
		return -EBADMSG;
	err = read_cie(file, address + sizeof(length) - back, &cie);
	if (err)
		return err;
	if (reader.left > length - sizeof(back))
		reader.left = length - sizeof(back);
	if (!take_encoded(&reader, cie.encoding, &fde->start) ||
	    !take_encoded(&reader, cie.encoding & 0x0f, &fde->size))
		return -EBADMSG;
	if (cie.has_augmentation) {
		if (!take_leb128(&reader, &skipped))
			return -EBADMSG;
		skipped = skipped < reader.left ? skipped : reader.left;
		reader.data += skipped;
		reader.left -= skipped;
	}
	fde->has_frame = begins_with_frame(&reader);
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
