/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf/eh_frame.h"

#include <errno.h>
#include <string.h>

static bool skip(struct eh_reader *reader, uint64_t size)
{
	if (reader->left < size)
		return false;
	reader->data += size;
	reader->left -= size;
	reader->address += size;
	return true;
}

bool eh_take(struct eh_reader *reader, void *value, size_t size)
{
	if (reader->left < size)
		return false;
	memcpy(value, reader->data, size);
	return skip(reader, size);
}

/* Takes so many bytes as a reader of their own. */
static bool take_part(struct eh_reader *reader, uint64_t size, struct eh_reader *part)
{
	*part = *reader;
	if (!skip(reader, size))
		return false;
	part->left = size;
	return true;
}

int eh_open(struct eh_reader *reader, const struct elf_file *file, uint64_t address, uint8_t *data,
	    size_t size)
{
	uint64_t available = elf_file__available(file, address);

	*reader = (struct eh_reader){data, available < size ? available : size, address};
	return elf_file__read(file, address, data, reader->left) ? -EBADMSG : 0;
}

bool eh_take_encoded(struct eh_reader *reader, uint8_t encoding, uint64_t *value)
{
	uint64_t pc = encoding & PE_PCREL ? reader->address : 0;
	uint16_t half = 0;
	uint32_t word = 0;
	bool ok;

	switch (encoding & 0x0f) {
	case PE_UDATA2:
	case PE_SDATA2:
		ok = eh_take(reader, &half, sizeof(half));
		*value = (encoding & 0x0f) == PE_SDATA2 ? (uint64_t)(int16_t)half : half;
		break;
	case PE_UDATA4:
	case PE_SDATA4:
		ok = eh_take(reader, &word, sizeof(word));
		*value = (encoding & 0x0f) == PE_SDATA4 ? (uint64_t)(int32_t)word : word;
		break;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		ok = eh_take(reader, value, sizeof(*value));
		break;
	default:
		return false;
	}
	if (ok)
		*value += pc;
	return ok;
}

/* Returns the number of bits that were taken, 0 if the value is cut off. */
static unsigned int take_leb128(struct eh_reader *reader, uint64_t *value, uint8_t *last)
{
	unsigned int shift = 0;

	*value = 0;
	*last = 0x80;
	while (*last & 0x80) {
		if (!eh_take(reader, last, 1))
			return 0;
		if (shift < 64)
			*value |= (uint64_t)(*last & 0x7f) << shift;
		shift += 7;
	}
	return shift;
}

bool eh_take_unsigned(struct eh_reader *reader, uint64_t *value)
{
	uint8_t last;

	return take_leb128(reader, value, &last) != 0;
}

bool eh_take_signed(struct eh_reader *reader, int64_t *value)
{
	uint64_t bits;
	uint8_t last;
	unsigned int taken = take_leb128(reader, &bits, &last);

	if (taken && taken < 64 && last & 0x40)
		bits |= ~0ull << taken;
	*value = (int64_t)bits;
	return taken != 0;
}

/* What the letters of an augmentation say. */
static int read_augmentation(struct eh_cie *cie, struct eh_reader reader, const char *letters)
{
	uint8_t encoding = 0;
	uint64_t ignored;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'L':
			if (!eh_take(&reader, &encoding, 1))
				return -EBADMSG;
			break;
		case 'P':
			if (!eh_take(&reader, &encoding, 1) ||
			    !eh_take_encoded(&reader, encoding, &ignored))
				return -EBADMSG;
			break;
		case 'R':
			if (!eh_take(&reader, &cie->encoding, 1))
				return -EBADMSG;
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* arm64: return addresses are signed with the other key */
		case 'G': /* arm64: a stack with memory tags */
			break;
		default:
			/* What follows it is not known, but where the instructions begin is. */
			return 0;
		}
	}
	return 0;
}

static int read_cie(const struct elf_file *file, uint64_t address, struct eh_cie *cie)
{
	struct eh_reader reader, augmentation;
	uint32_t length, id;
	uint8_t version = 0, column = 0;
	const char *letters;
	uint64_t size;

	memset(cie, 0, offsetof(struct eh_cie, data));
	if (eh_open(&reader, file, address, cie->data, sizeof(cie->data)) ||
	    !eh_take(&reader, &length, sizeof(length)) || length == UINT32_MAX)
		return -EBADMSG;
	if (reader.left > length)
		reader.left = length;
	if (!eh_take(&reader, &id, sizeof(id)) || id || !eh_take(&reader, &version, 1))
		return -EBADMSG;
	letters = (const char *)reader.data;
	if ((version != 1 && version != 3) || !memchr(letters, 0, reader.left))
		return -EBADMSG;
	skip(&reader, strlen(letters) + 1);
	cie->encoding = PE_ABSPTR;
	cie->has_augmentation = *letters == 'z';
	if ((*letters && *letters != 'z') || !eh_take_unsigned(&reader, &cie->code_alignment) ||
	    !eh_take_signed(&reader, &cie->data_alignment))
		return -EBADMSG;
	if (version == 1 ? !eh_take(&reader, &column, 1)
			 : !eh_take_unsigned(&reader, &cie->return_register))
		return -EBADMSG;
	if (version == 1)
		cie->return_register = column;
	if (cie->has_augmentation) {
		if (!eh_take_unsigned(&reader, &size) || !take_part(&reader, size, &augmentation) ||
		    read_augmentation(cie, augmentation, letters + 1))
			return -EBADMSG;
	}
	cie->instructions = reader;
	return 0;
}

int eh_fde_read(struct eh_fde *fde, struct eh_cie *cie, const struct elf_file *file,
		uint64_t address, uint8_t *data, size_t size)
{
	struct eh_reader reader;
	uint32_t length, back;
	uint64_t skipped;
	int err;

	if (eh_open(&reader, file, address, data, size) ||
	    !eh_take(&reader, &length, sizeof(length)) || length < sizeof(back) ||
	    length == UINT32_MAX || !eh_take(&reader, &back, sizeof(back)) || !back)
		return -EBADMSG;
	err = read_cie(file, address + sizeof(length) - back, cie);
	if (err)
		return err;
	fde->is_cut = reader.left < length - sizeof(back);
	if (reader.left > length - sizeof(back))
		reader.left = length - sizeof(back);
	if (!eh_take_encoded(&reader, cie->encoding, &fde->start) ||
	    !eh_take_encoded(&reader, cie->encoding & 0x0f, &fde->size))
		return -EBADMSG;
	if (cie->has_augmentation &&
	    (!eh_take_unsigned(&reader, &skipped) ||
	     !skip(&reader, skipped < reader.left ? skipped : reader.left)))
		return -EBADMSG;
	fde->instructions = reader;
	return 0;
}
