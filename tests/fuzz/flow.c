/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Code of the target: its instructions, which of them are reached, and the exits of a function. The
 * input is the architecture, a list of regions, and their code.
 */
#include <errno.h>
#include "code/exits.h"
#include "code/insn.h"
#include "fuzz.h"

#define BASE	    0x10000ull
#define REGIONS_MAX 8

/* As in the input. */
struct region {
	uint8_t kind;
	uint8_t from;	/* also the base of switch tables, at 256 * that */
	uint16_t start; /* from BASE on */
	uint16_t size;
} __attribute__((packed));

struct file {
	struct region regions[REGIONS_MAX];
	size_t count;
	const uint8_t *code;
	size_t size;
};

static int read_code(void *ctx, uint64_t address, void *data, size_t size)
{
	const struct file *file = ctx;

	if (address < BASE || address - BASE > file->size || size > file->size - (address - BASE))
		return -ERANGE;
	memcpy(data, file->code + (address - BASE), size);
	return 0;
}

static enum region_kind find_region(void *ctx, uint64_t address, struct code_range *range)
{
	const struct file *file = ctx;

	for (size_t i = 0; i < file->count; i++) {
		const struct region *region = &file->regions[i];

		if (address - BASE - region->start >= region->size)
			continue;
		*range = (struct code_range){BASE + region->start, region->size};
		return (enum region_kind)(REGION_FUNCTION + region->kind % 4);
	}
	return REGION_UNKNOWN;
}

static void check_exits(struct file *file, enum fbt_arch arch)
{
	const struct exits_source source = {arch, read_code, find_region, file};
	struct code_range ranges[2] = {{BASE, file->size}, {BASE, 0}};
	struct exits exits;
	size_t count = 1;
	int err;

	if (file->count)
		find_region(file, BASE + file->regions[0].start, &ranges[0]);
	if (file->count > 1) {
		find_region(file, BASE + file->regions[1].start, &ranges[1]);
		count = ranges[1].size ? 2 : 1;
	}
	err = exits_find(&exits, &source, ranges, count);
	fuzz_check(err <= 0);
	fuzz_check(err || (exits.addresses.count && exits.begin.address >= ranges[0].address));
	fuzz_check(exits.addresses.count == exits.targets.count || err == -ENOMEM);
	fuzz_check(err != -ENOTSUP || exits.reason[0]);
	vec_for_each (address, &exits.addresses)
		fuzz_check(*address >= BASE && *address - BASE < file->size);
	exits_clear(&exits);
}

/* Each instruction follows the one before it, up to the end. */
static void check_insns(enum fbt_arch arch, const uint8_t *code, size_t size)
{
	insn_vec insns = {0};
	const insn_vec *pieces[] = {&insns};
	uint64_t bad, at = BASE;
	bool all;
	int err = insn_decode(arch, code, size, BASE, &insns, &bad);

	vec_for_each (insn, &insns) {
		fuzz_check(insn->address == at && insn->size);
		at += insn->size;
	}
	fuzz_check(at - BASE <= size && (err || at - BASE == size));
	fuzz_check(err != -EBADMSG || (bad >= BASE && bad - BASE < size));
	if (!err && insns.count)
		exits_reach(pieces, 1, &all);
	vec_free(&insns);
	fuzz_check(insn_marker_size(arch, code, size) <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum fbt_arch arch;
	struct file file = {.count = 0};
	uint8_t *code;

	if (size < 1)
		return -1;
	arch = data[0] & 1 ? FBT_ARCH_ARM64 : FBT_ARCH_X86_64;
	file.count = (data[0] >> 1) % (REGIONS_MAX + 1);
	data++;
	size--;
	if (size < file.count * sizeof(file.regions[0]))
		return -1;
	memcpy(file.regions, data, file.count * sizeof(file.regions[0]));
	data += file.count * sizeof(file.regions[0]);
	size -= file.count * sizeof(file.regions[0]);
	code = fuzz_copy(data, size);
	file.code = code;
	file.size = size;
	check_insns(arch, code, size);
	if (size)
		check_exits(&file, arch);
	free(code);
	return 0;
}
