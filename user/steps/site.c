/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "proc/machine.h"
#include "proc/maps.h"
#include "proc/process.h"
#include "steps/image.h"
#include "steps/patched.h"
#include "code/insn.h"
#include "code/straight.h"

/* A caller with more code than this before the call is not decoded. */
#define CALLER_BYTES_MAX (4u << 20)

struct place {
	struct image *image;
	struct memory *memory;
	struct return_address at;
};

static const struct mapping *find_mapping(const mapping_vec *maps, uint64_t address)
{
	vec_for_each (mapping, maps) {
		if (address >= mapping->start && address < mapping->end)
			return mapping->executable && mapping->path ? mapping : NULL;
	}
	return NULL;
}

/* The caller closes the image in any case. */
static int open_place(struct place *place, uint32_t tgid, uint64_t address)
{
	struct proc_ref ref = processes_ref(tgid);
	const struct mapping *mapping;
	mapping_vec maps = {0};
	int err = maps_read_all(ref, &maps);

	mapping = err ? NULL : find_mapping(&maps, address);
	if (!err && !mapping)
		err = -ENOENT;
	if (!err)
		err = image_open(place->image, processes_live_thread(tgid), mapping);
	place->image->quiet = true;
	if (!err)
		err = elf_file__code_address(place->image->elf,
					     address - mapping->start + mapping->offset,
					     &place->at.address);
	if (!err) {
		place->at.memory = address;
		place->at.left = mapping->end - address;
	}
	maps_free(&maps);
	return err;
}

/*
 * The extent of the caller. The unwind table is quick to read; symbols may be many. Of an image
 * that was looked at before, both may be there.
 */
static int find_caller(struct place *place, uint32_t tgid, struct code_range *range)
{
	struct image *image = place->image;
	int err = image->fdes.table ? 0 : elf_fdes_read(&image->fdes, image->elf);

	if (!err && !image_extent(image, place->at.address - 1, range))
		return 0;
	if (!image->read) {
		elf_fdes_clear(&image->fdes);
		memset(&image->fdes, 0, sizeof(image->fdes));
	}
	if (err != -ENOMEM)
		err = image_read(image, processes_live_thread(tgid), NULL, 0);
	return err ? err : image_extent(image, place->at.address - 1, range);
}

/* Whether an instruction of the code, which begins at address, is a call that ends at its end. */
static int ends_with_call(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address)
{
	insn_vec insns = {0};
	uint64_t bad;
	int err = insn_decode(arch, code, size, address, &insns, &bad);

	if (!err && (!insns.count || insns.items[insns.count - 1].kind != INSN_CALL))
		err = -EBADMSG;
	vec_free(&insns);
	return err;
}

/*
 * The word on the stack that the kernel side took for a return address may be anything. A
 * breakpoint in the middle of an instruction would break the caller, so the word must be right
 * after a call, by the caller's code from its beginning.
 */
static int check_call(struct place *place, uint32_t tgid)
{
	struct code_range range;
	uint8_t *code;
	size_t size;
	int err = find_caller(place, tgid, &range);

	if (err)
		return err;
	size = place->at.address - range.address;
	if (size > CALLER_BYTES_MAX)
		return -EFBIG;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	err = elf_file__read(place->image->elf, range.address, code, size);
	if (!err)
		err = ends_with_call(elf_file__arch(place->image->elf), code, size, range.address);
	free(code);
	return err;
}

static int find_straight(const struct place *place, bool keeps_memory, struct straight *straight)
{
	uint64_t available = elf_file__available(place->image->elf, place->at.address);
	uint64_t size = place->at.left < available ? place->at.left : available;
	unsigned int flags = keeps_memory ? STRAIGHT_KEEPS_MEMORY : 0;
	uint8_t code[STRAIGHT_BYTES];

	if (machine_has_shadow_stacks())
		flags |= STRAIGHT_AVOIDS_CALLS;
	if (size > sizeof(code))
		size = sizeof(code);
	if (elf_file__read(place->image->elf, place->at.address, code, size))
		return -EIO;
	return straight_find(elf_file__arch(place->image->elf), code, size, place->at.address,
			     flags, straight);
}

static int fill(struct step_site *site, struct place *place, bool keeps_memory)
{
	struct straight straight = {0};
	int err = find_straight(place, keeps_memory, &straight);

	if (!err)
		err = elf_file__offset(place->image->elf, straight.address, true, &site->offset);
	if (err)
		return err;
	/* On x86-64 the return has removed the return address. */
	site->sp = straight.sp;
	if (elf_file__arch(place->image->elf) == FBT_ARCH_X86_64)
		site->sp += (int32_t)sizeof(uint64_t);
	site->emulated = straight.emulated;
	site->device = place->image->device;
	site->inode = place->image->inode;
	site->path = strdup(place->image->path);
	site->fd = fcntl(place->image->fd, F_DUPFD_CLOEXEC, 0);
	return site->path && site->fd >= 0 ? 0 : -ENOMEM;
}

/* Up to the instruction that the probe is to be on. */
static bool is_patched(const struct step_site *site, const struct place *place, uint32_t tgid)
{
	uint64_t from, size;

	if (elf_file__offset(place->image->elf, place->at.address, true, &from))
		return false;
	size = min_u64(site->offset - from + PATCHED_PROBED, place->at.left);
	return code_is_patched(place->memory, tgid, elf_file__arch(place->image->elf),
			       place->at.memory, place->image->fd, from,
			       min_u64(size, PATCHED_BYTES));
}

static int find_at(struct step_site *site, struct place *place, uint32_t tgid, bool keeps_memory)
{
	int err = check_call(place, tgid);

	if (!err)
		err = fill(site, place, keeps_memory);
	if (!err && is_patched(site, place, tgid))
		err = -EFAULT;
	if (err)
		step_site_clear(site);
	return err;
}

int step_site_find_in(struct step_site *site, struct image *image, uint32_t tgid,
		      struct memory *memory, const struct return_address *at, bool keeps_memory)
{
	struct place place = {.image = image, .memory = memory, .at = *at};

	*site = (struct step_site){.fd = -1};
	return find_at(site, &place, tgid, keeps_memory);
}

int step_site_find(struct step_site *site, uint32_t tgid, uint64_t address, bool keeps_memory)
{
	struct image image = {.fd = -1, .debug_fd = -1};
	struct place place = {.image = &image, .memory = memory__new()};
	int err;

	*site = (struct step_site){.fd = -1};
	err = place.memory ? open_place(&place, tgid, address) : -ENOMEM;
	if (!err)
		err = find_at(site, &place, tgid, keeps_memory);
	image_close(&image);
	memory__free(place.memory);
	return err;
}

void step_site_clear(struct step_site *site)
{
	if (site->fd >= 0)
		close(site->fd);
	free(site->path);
	*site = (struct step_site){.fd = -1};
}
