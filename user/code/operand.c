/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "code/operand.h"

#include <stdbool.h>
#include <string.h>

#include "fbt_shared.h"

/* ModRM and what follows it. */
struct address {
	uint32_t registers; /* FBT_JUMP_HAS_*, and the numbers of these */
	unsigned int scale; /* as a power of two */
	int32_t displacement;
	bool known;
};

static int32_t read_displacement(const uint8_t *code, size_t size, size_t bytes, bool *known)
{
	int32_t value = 0;

	*known = size >= bytes;
	if (!*known || !bytes)
		return 0;
	if (bytes == 1)
		return (int8_t)code[0];
	memcpy(&value, code, sizeof(value));
	return value;
}

static uint32_t base_is(uint32_t number)
{
	return FBT_JUMP_HAS_BASE | number << FBT_JUMP_BASE_SHIFT;
}

static uint32_t index_is(uint32_t number)
{
	return FBT_JUMP_HAS_INDEX | number << FBT_JUMP_INDEX_SHIFT;
}

/* Intel SDM volume 2, tables 2-2 and 2-3. Not relative to rip: that is an entry of the GOT. */
static struct address read_address(const uint8_t *code, size_t size, uint8_t rex)
{
	struct address address = {0};
	unsigned int mode = code[0] >> 6, low = code[0] & 7;
	size_t at = 1, bytes = mode == 1 ? 1 : mode == 2 ? 4 : 0;

	if (low == 4) {
		uint32_t index;
		uint8_t sib;

		if (size < 2)
			return address;
		sib = code[at++];
		address.scale = sib >> 6;
		index = (sib >> 3 & 7u) | (rex & 2u) << 2;
		if (index != 4)
			address.registers |= index_is(index);
		if ((sib & 7) == 5 && mode == 0)
			bytes = 4;
		else
			address.registers |= base_is((sib & 7u) | (rex & 1u) << 3);
	} else if (low == 5 && mode == 0) {
		return address;
	} else {
		address.registers = base_is(low | (rex & 1u) << 3);
	}
	address.displacement = read_displacement(code + at, size - at, bytes, &address.known);
	return address;
}

uint32_t jump_operand(const uint8_t *code, size_t size)
{
	struct address address;
	uint8_t rex = 0;
	size_t at = 0;

	/* bnd, and notrack, which a segment prefix is here. Segments with a base are left out. */
	while (at < size && (code[at] == 0xf2 || code[at] == 0x3e))
		at++;
	if (at < size && (code[at] & 0xf0) == 0x40)
		rex = code[at++];
	if (size - at < 2 || code[at] != 0xff || (code[at + 1] >> 3 & 7) != 4)
		return 0;
	at++;
	if (code[at] >> 6 == 3)
		return FBT_JUMP_KNOWN | base_is((code[at] & 7u) | (rex & 1u) << 3);
	address = read_address(code + at, size - at, rex);
	if (!address.known || address.displacement < -FBT_JUMP_DISPLACEMENT_MAX ||
	    address.displacement >= FBT_JUMP_DISPLACEMENT_MAX)
		return 0;
	return FBT_JUMP_KNOWN | FBT_JUMP_MEMORY | address.registers |
	       address.scale << FBT_JUMP_SCALE_SHIFT |
	       (uint32_t)address.displacement << FBT_JUMP_DISPLACEMENT_SHIFT;
}
