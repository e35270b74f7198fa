/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/maps.h"

#include <errno.h>

#include "base/clock.h"
#include "base/vec.h"
#include "proc/process.h"
#include "proc/status.h"

#define AGAIN_NS      NS_PER_S
#define OLD_NS	      (10 * NS_PER_S)
#define PROCESSES_MAX 64

struct code_map {
	uint32_t tgid;
	uint64_t read_ns;
	mapping_vec maps; /* by address */
};

struct code_maps {
	struct code_files *files;
	VEC(struct code_map) processes;
};

struct code_maps *code_maps__new(struct code_files *files)
{
	struct code_maps *maps = calloc(1, sizeof(*maps));

	if (maps)
		maps->files = files;
	return maps;
}

void code_maps__free(struct code_maps *maps)
{
	if (!maps)
		return;
	vec_for_each (process, &maps->processes)
		maps_free(&process->maps);
	vec_free(&maps->processes);
	free(maps);
}

static void drop(struct code_maps *maps, size_t index)
{
	maps_free(&maps->processes.items[index].maps);
	maps->processes.items[index] = maps->processes.items[--maps->processes.count];
}

void code_maps__forget(struct code_maps *maps, uint32_t tgid)
{
	for (size_t i = 0; i < maps->processes.count; i++) {
		if (maps->processes.items[i].tgid != tgid)
			continue;
		drop(maps, i);
		return;
	}
}

/* The map that was read longest ago makes room. */
static struct code_map *add_process(struct code_maps *maps, uint32_t tgid)
{
	size_t oldest = 0;

	for (size_t i = 1; i < maps->processes.count; i++)
		if (maps->processes.items[i].read_ns < maps->processes.items[oldest].read_ns)
			oldest = i;
	if (maps->processes.count == PROCESSES_MAX)
		drop(maps, oldest);
	if (vec_push(&maps->processes, ((struct code_map){.tgid = tgid})))
		return NULL;
	return &maps->processes.items[maps->processes.count - 1];
}

static struct code_map *find_process(struct code_maps *maps, uint32_t tgid)
{
	vec_for_each (process, &maps->processes)
		if (process->tgid == tgid)
			return process;
	return add_process(maps, tgid);
}

static const struct mapping *find_mapping(const struct code_map *process, uint64_t address)
{
	const mapping_vec *maps = &process->maps;
	size_t after = first_index(i, maps->count, maps->items[i].start > address);

	return after && address < maps->items[after - 1].end ? &maps->items[after - 1] : NULL;
}

static void read_again(struct code_map *process, uint64_t now_ns)
{
	mapping_vec maps = {0};

	process->read_ns = now_ns;
	if (maps_read_executable(processes_ref(process->tgid), &maps)) {
		/* It has ended: what was known of it is still true. */
		maps_free(&maps);
		return;
	}
	maps_free(&process->maps);
	process->maps = maps;
}

/*
 * Whether the map is to be read. That of a mapping is still good as a rule, but another file may
 * have taken its place.
 */
static bool is_due(struct code_map *process, const struct mapping *mapping, uint64_t now_ns)
{
	uint64_t age_ns = mapping ? OLD_NS : AGAIN_NS;

	if (process->read_ns && process->read_ns + age_ns > now_ns)
		return false;
	if (!maps_are_locked(process->tgid))
		return true;
	process->read_ns = mapping ? now_ns - OLD_NS + AGAIN_NS : now_ns;
	return false;
}

/* The number of the file of a mapping; 0: there is no room for one more. */
static uint32_t add_file(const struct code_maps *maps, uint32_t tgid, const struct mapping *mapping,
			 uint64_t now_ns)
{
	return mapping->is_vdso ? code_files__add_vdso(maps->files, tgid, mapping, now_ns)
				: code_files__add(maps->files, tgid, mapping, now_ns);
}

static bool has_ended(uint32_t tgid)
{
	struct thread_stat stat;

	return thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}) == -ESRCH;
}

/* But for the one whose stack is read. */
static void drop_ended(struct code_maps *maps, uint32_t tgid)
{
	for (size_t i = maps->processes.count; i--;)
		if (maps->processes.items[i].tgid != tgid &&
		    has_ended(maps->processes.items[i].tgid))
			drop(maps, i);
}

/* Files that no process has mapped any more, as far as is known, give way to one that is. */
static bool make_room(struct code_maps *maps, uint32_t tgid, uint64_t now_ns)
{
	if (!code_files__begin_room(maps->files, now_ns))
		return false;
	drop_ended(maps, tgid);
	vec_for_each (process, &maps->processes) {
		vec_for_each (mapping, &process->maps)
			code_files__keep(maps->files, process->tgid, mapping);
	}
	return code_files__end_room(maps->files);
}

int code_maps__find(struct code_maps *maps, uint32_t tgid, uint64_t address, uint64_t now_ns,
		    struct code_at *code)
{
	struct code_map *process = find_process(maps, tgid);
	const struct mapping *mapping;
	uint64_t offset;

	if (!process)
		return -ENOENT;
	mapping = find_mapping(process, address);
	if (is_due(process, mapping, now_ns)) {
		read_again(process, now_ns);
		mapping = find_mapping(process, address);
	}
	if (!mapping)
		return -ENOENT;
	*code = (struct code_at){.address = address};
	if (!mapping->path && !mapping->is_vdso)
		return 0;
	code->module = add_file(maps, tgid, mapping, now_ns);
	if (!code->module && make_room(maps, tgid, now_ns))
		code->module = add_file(maps, tgid, mapping, now_ns);
	if (!code->module)
		return 0;
	offset = address - mapping->start + mapping->offset;
	code->file = code_files__elf(maps->files, code->module);
	if (!code->file || elf_file__code_address(code->file, offset, &code->address)) {
		code->file = NULL;
		code->address = offset;
	}
	return 0;
}
