/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "steps/image.h"
#include "code/operand.h"
#include "steps/tails.h"

/* A file as the process has mapped it. */
struct file {
	struct image image;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint64_t bias;	/* address in memory minus that in the file */
	uint32_t index; /* in follow.files; ~0: none of its places is there yet */
};

struct spot {
	struct file *file;
	uint64_t address; /* in the file */
};

/* A function that was looked at. */
struct seen {
	struct spot entry;
	bool failed;
};

/* A jump, and where it leads to. */
struct step {
	struct spot from;
	struct spot to; /* file NULL: the function where the walk begins */
	bool is_branch;
};

struct walk {
	struct follow *follow;
	uint32_t tgid;
	uint32_t thread; /* a living one */
	struct memory *memory;
	mapping_vec maps;
	VEC(struct file *) files;
	VEC(struct seen) seen;
	VEC(struct step) todo;
	struct code_range own; /* the body of the step function; size 0: it is not looked at */
};

static void explain(struct walk *walk, const char *name, const char *reason)
{
	if (!*walk->follow->reason)
		snprintf(walk->follow->reason, sizeof(walk->follow->reason), "%.120s%s%.120s", name,
			 *name ? ": " : "", reason);
}

/* Symbols are read for a message only: what is followed is found by the unwind table, if it can. */
static int read_symbols(struct walk *walk, struct file *file)
{
	struct image *image = &file->image;

	if (image->read)
		return 0;
	elf_fdes_clear(&image->fdes);
	memset(&image->fdes, 0, sizeof(image->fdes));
	return image_read(image, walk->thread, NULL, 0);
}

static void explain_spot(struct walk *walk, const struct spot *spot, bool is_slot,
			 const char *reason)
{
	struct exit_tail tail = {.address = spot->address, .is_slot = is_slot};
	char *name;

	if (*walk->follow->reason)
		return;
	(void)read_symbols(walk, spot->file);
	name = tail_name(&spot->file->image, &tail);
	explain(walk, name ? name : "", reason);
	free(name);
}

static bool is_file(const struct file *file, const struct mapping *mapping, uint64_t start)
{
	return file->inode == mapping->inode && file->device_major == mapping->device_major &&
	       file->device_minor == mapping->device_minor && file->bias == mapping->start - start;
}

static int open_file(struct walk *walk, const struct mapping *mapping, struct file **result)
{
	struct file *file = calloc(1, sizeof(*file));
	uint64_t start = 0;
	int err;

	if (!file)
		return -ENOMEM;
	err = image_open(&file->image, walk->thread, mapping);
	file->image.quiet = true;
	if (!err)
		err = elf_file__arch(file->image.elf) == FBT_ARCH_X86_64 ? 0 : -ENOTSUP;
	if (!err)
		err = elf_file__mapped_address(file->image.elf, mapping->offset, &start);
	if (!err && elf_fdes_read(&file->image.fdes, file->image.elf) == -ENOMEM)
		err = -ENOMEM;
	file->inode = mapping->inode;
	file->device_major = mapping->device_major;
	file->device_minor = mapping->device_minor;
	file->bias = mapping->start - start;
	file->index = ~0u;
	err = err ? err : vec_push(&walk->files, file);
	if (err) {
		image_close(&file->image);
		free(file);
		return err;
	}
	*result = file;
	return 0;
}

static int take_file(struct walk *walk, const struct mapping *mapping, struct file **result)
{
	uint64_t start;

	vec_for_each (file, &walk->files) {
		if (!elf_file__mapped_address((*file)->image.elf, mapping->offset, &start) &&
		    is_file(*file, mapping, start)) {
			*result = *file;
			return 0;
		}
	}
	return open_file(walk, mapping, result);
}

/* The code at an address in memory. -ENOENT if it is in no file. */
static int find_spot(struct walk *walk, uint64_t address, struct spot *spot)
{
	vec_for_each (mapping, &walk->maps) {
		int err;

		if (address < mapping->start || address >= mapping->end)
			continue;
		if (!mapping->executable || !mapping->path)
			return -ENOENT;
		err = take_file(walk, mapping, &spot->file);
		if (!err)
			spot->address = address - spot->file->bias;
		return err;
	}
	return -ENOENT;
}

/* An entry that the dynamic linker has not bound yet leads back into the PLT: push, jump. */
static bool is_unbound(const struct spot *to, const struct file *from)
{
	static const uint8_t marker[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[5];

	if (to->file != from || elf_file__read(from->image.elf, to->address, code, sizeof(code)))
		return false;
	return code[0] == 0x68 || (!memcmp(code, marker, sizeof(marker)) && code[4] == 0x68);
}

/* What an entry of the GOT leads to now. */
static int read_slot(struct walk *walk, struct file *file, uint64_t slot, struct spot *to)
{
	struct memory_part part = {.address = slot + file->bias, .size = sizeof(uint64_t)};
	struct proc_ref ref = {.tgid = walk->thread};
	struct spot from = {file, slot};
	uint64_t value;
	int err;

	if (memory__read(walk->memory, ref, &part, 1) || part.got != sizeof(value)) {
		explain_spot(walk, &from, true, "the GOT cannot be read");
		return -ENOTSUP;
	}
	memcpy(&value, part.data, sizeof(value));
	err = find_spot(walk, value, to);
	if (err == -ENOMEM)
		return err;
	if (err || is_unbound(to, file)) {
		explain_spot(walk, &from, true,
			     err ? "it is in no file" : "the process has not called it yet");
		return -ENOTSUP;
	}
	return 0;
}

/* Where a jump to spot leads in the end: through the stub, if that is one. */
static int pass_stub(struct walk *walk, struct spot *spot)
{
	for (int i = 0; i < 2; i++) {
		uint64_t slot = tail_slot(&spot->file->image, spot->address);
		int err = slot ? read_slot(walk, spot->file, slot, spot) : 0;

		if (err || !slot)
			return err;
	}
	return 0;
}

static int take_place_file(struct walk *walk, struct file *file)
{
	struct follow_file added = {
		.path = strdup(file->image.path),
		.fd = fcntl(file->image.fd, F_DUPFD_CLOEXEC, 0),
		.device = file->image.device,
		.inode = file->image.inode,
	};
	int err = added.path && added.fd >= 0 ? vec_push(&walk->follow->files, added) : -ENOMEM;

	if (err) {
		if (added.fd >= 0)
			close(added.fd);
		free(added.path);
		return err;
	}
	file->index = (uint32_t)walk->follow->files.count - 1;
	return 0;
}

static int add_place(struct walk *walk, const struct spot *spot, enum follow_kind kind)
{
	struct follow_place place = {.kind = kind, .address = spot->address + spot->file->bias};
	int err = spot->file->index == ~0u ? take_place_file(walk, spot->file) : 0;

	if (!err)
		err = elf_file__offset(spot->file->image.elf, spot->address, true, &place.offset);
	if (err)
		return err;
	place.file = spot->file->index;
	vec_for_each (known, &walk->follow->places) {
		if (known->file == place.file && known->offset == place.offset)
			return 0;
	}
	if (walk->follow->places.count == FOLLOW_PLACES_MAX) {
		explain(walk, "", "too many returns in what it leads to");
		return -ENOTSUP;
	}
	walk->follow->jumps += kind == FOLLOW_JUMP;
	return vec_push(&walk->follow->places, place);
}

static int find_body(struct walk *walk, const struct spot *entry, struct code_range *body)
{
	struct image *image = &entry->file->image;
	int err;

	if (walk->own.size && entry->file == walk->seen.items[0].entry.file &&
	    entry->address == walk->own.address) {
		*body = walk->own;
		return 0;
	}
	if (!image_extent(image, entry->address, body) && body->address == entry->address)
		return 0;
	err = read_symbols(walk, entry->file);
	if (err == -ENOMEM)
		return err;
	if (image_extent(image, entry->address, body) || body->address != entry->address) {
		explain_spot(walk, entry, false, "where its code ends is not known");
		return -ENOTSUP;
	}
	return 0;
}

/* A jump through a pointer: where it leads to is seen when it is hit. */
static int add_pointer(struct walk *walk, const struct spot *jump, const struct spot *entry)
{
	uint64_t size = elf_file__available(jump->file->image.elf, jump->address);
	uint8_t code[16];
	int err = add_place(walk, jump, FOLLOW_JUMP);

	if (err)
		return err;
	if (size > sizeof(code))
		size = sizeof(code);
	if (elf_file__read(jump->file->image.elf, jump->address, code, size))
		return 0;
	vec_for_each (place, &walk->follow->places) {
		if (place->address == jump->address + jump->file->bias)
			place->operand = jump_operand(code, size);
		walk->follow->pointers |= place->operand != 0;
	}
	explain_spot(walk, entry, false, "a jump through a pointer");
	return 0;
}

/* A jump that cannot be followed gets a probe, unless it may as well not be taken. */
static int give_up_jump(struct walk *walk, const struct step *step)
{
	if (step->is_branch) {
		explain_spot(walk, &step->from, false, "a conditional jump");
		return -ENOTSUP;
	}
	return add_place(walk, &step->from, FOLLOW_JUMP);
}

/* Takes one exit of a function: a place, or something to go on with. */
static int take_exit(struct walk *walk, const struct spot *entry, const struct exits *exits,
		     size_t index)
{
	struct file *file = entry->file;
	struct step step = {
		.from = {file, exits->addresses.items[index]},
		.to = {file, exits->targets.items[index]},
		.is_branch = exits->kinds.items[index] == INSN_BRANCH,
	};
	uint64_t slot = exits->slots.items[index];
	int err;

	if (exits->kinds.items[index] == INSN_RETURN)
		return add_place(walk, &step.from,
				 walk->seen.count == 1 && walk->own.size ? FOLLOW_OWN
									 : FOLLOW_RETURN);
	if (!step.to.address && !slot)
		return add_pointer(walk, &step.from, entry);
	err = slot ? read_slot(walk, file, slot, &step.to) : 0;
	err = err ? err : pass_stub(walk, &step.to);
	if (err == -ENOTSUP)
		return give_up_jump(walk, &step);
	return err ? err : vec_push(&walk->todo, step);
}

static int take_exits(struct walk *walk, const struct spot *entry, const struct exits *exits)
{
	int err = 0;

	for (size_t i = 0; i < exits->addresses.count && !err; i++)
		err = take_exit(walk, entry, exits, i);
	return err;
}

/* Looks at one function. -ENOTSUP if its exits are not known. */
static int look_at(struct walk *walk, const struct spot *entry)
{
	struct code_range body;
	struct exits exits = {0};
	size_t index = walk->seen.count;
	int err;

	if (walk->seen.count == FOLLOW_FUNCTIONS_MAX) {
		explain(walk, "", "it leads to too many functions");
		return -ENOTSUP;
	}
	err = vec_push(&walk->seen, ((struct seen){.entry = *entry}));
	if (err)
		return err;
	err = find_body(walk, entry, &body);
	if (!err) {
		err = resolve_exits(&exits, &entry->file->image, &body);
		if (err == -ENOTSUP && !exits.never_ends)
			explain_spot(walk, entry, false, exits.reason);
		else if (err == -ENOTSUP)
			err = 0; /* Nothing returns from there. */
		if (err == -EIO || err == -ERANGE)
			err = -ENOTSUP;
	}
	err = err ? err : take_exits(walk, entry, &exits);
	if (err == -ENOTSUP)
		walk->seen.items[index].failed = true;
	exits_clear(&exits);
	return err;
}

static const struct seen *find_seen(const struct walk *walk, const struct spot *entry)
{
	vec_for_each (seen, &walk->seen) {
		if (seen->entry.file == entry->file && seen->entry.address == entry->address)
			return seen;
	}
	return NULL;
}

static int go(struct walk *walk, const struct spot *entry)
{
	int err = look_at(walk, entry);

	while (!err && walk->todo.count) {
		struct step step = walk->todo.items[--walk->todo.count];
		const struct seen *seen = find_seen(walk, &step.to);
		bool failed = seen && seen->failed;

		if (!seen) {
			err = look_at(walk, &step.to);
			failed = err == -ENOTSUP;
		}
		if (failed)
			err = give_up_jump(walk, &step);
	}
	return err;
}

/* Without a single return there is nothing to probe. */
static int check(struct walk *walk)
{
	walk->follow->functions = (uint32_t)walk->seen.count - (walk->own.size != 0);
	if (walk->follow->places.count > walk->follow->jumps || walk->follow->pointers)
		return 0;
	explain(walk, "", "nothing that it leads to returns");
	return -ENOTSUP;
}

static int set_up(struct walk *walk)
{
	walk->memory = memory__new();
	if (!walk->memory)
		return -ENOMEM;
	return maps_read_all(processes_ref(walk->tgid), &walk->maps);
}

static void tear_down(struct walk *walk)
{
	memory__free(walk->memory);
	vec_for_each (file, &walk->files) {
		image_close(&(*file)->image);
		free(*file);
	}
	vec_free(&walk->files);
	vec_free(&walk->seen);
	vec_free(&walk->todo);
	maps_free(&walk->maps);
}

/* The step function's file, by its inode first: names are not unique, and few files are opened. */
static int find_own(struct walk *walk, const struct step_function *function, struct spot *entry)
{
	vec_for_each (mapping, &walk->maps) {
		struct file *file;

		if (!mapping->executable || !mapping->path || mapping->inode != function->inode ||
		    take_file(walk, mapping, &file))
			continue;
		if (file->image.device == function->device &&
		    file->image.inode == function->inode) {
			*entry = (struct spot){file, function->address};
			return 0;
		}
	}
	return -ENOENT;
}

int follow_exits(struct follow *follow, uint32_t tgid, const struct step_function *function)
{
	struct walk walk = {
		.follow = follow,
		.tgid = tgid,
		.thread = processes_live_thread(tgid),
		.own = {function->address, function->size},
	};
	struct spot entry;
	int err;

	*follow = (struct follow){0};
	err = set_up(&walk);
	err = err ? err : find_own(&walk, function, &entry);
	err = err ? err : go(&walk, &entry);
	err = err ? err : check(&walk);
	tear_down(&walk);
	return err;
}

int follow_entry(struct follow *follow, uint32_t tgid, uint64_t address)
{
	struct walk walk = {
		.follow = follow,
		.tgid = tgid,
		.thread = processes_live_thread(tgid),
	};
	struct spot entry;
	int err;

	*follow = (struct follow){0};
	err = set_up(&walk);
	err = err ? err : find_spot(&walk, address, &entry);
	err = err ? err : pass_stub(&walk, &entry);
	err = err ? err : go(&walk, &entry);
	err = err ? err : check(&walk);
	tear_down(&walk);
	return err;
}

void follow_clear(struct follow *follow)
{
	vec_for_each (file, &follow->files) {
		if (file->fd >= 0)
			close(file->fd);
		free(file->path);
	}
	vec_free(&follow->files);
	vec_free(&follow->places);
}
