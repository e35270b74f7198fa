/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/chains.h"

#include "base/clock.h"
#include "stacks/files.h"
#include "stacks/maps.h"
#include "stacks/unwind.h"
#include "elf/unwind.h"

/* More functions on the stacks of a few threads would be those of a damaged table. */
#define FUNCTIONS_MAX 65536

#define NO_FUNCTION UINT32_MAX

/* A place of code that was met. */
struct place {
	uint32_t module;
	uint64_t address;
	uint32_t function; /* its index, or NO_FUNCTION */
};

/* The unwind table of a file. */
struct table {
	bool read;
	struct elf_fdes fdes;
};

struct chains {
	uint32_t tgid;
	struct cfi_reader *reader;
	struct code_files *files;
	struct code_maps *maps;
	uint64_t now_ns;
	VEC(struct table) tables; /* by number of the file */
	VEC(struct place) places; /* by module and address */
	VEC(struct chain_function) functions;
	VEC(uint32_t) marks; /* of each function: the last chain that it is in, from 1 */
	struct chain_set set;
	struct unwound unwound;
};

struct chains *chains__new(uint32_t tgid)
{
	struct chains *chains = calloc(1, sizeof(*chains));

	if (!chains)
		return NULL;
	chains->tgid = tgid;
	chains->reader = cfi_reader__new();
	chains->files = code_files__new(&(struct symbol_files){NULL});
	if (chains->files)
		chains->maps = code_maps__new(chains->files);
	if (!chains->reader || !chains->maps) {
		chains__free(chains);
		return NULL;
	}
	return chains;
}

void chains__free(struct chains *chains)
{
	if (!chains)
		return;
	vec_for_each (table, &chains->tables)
		elf_fdes_clear(&table->fdes);
	vec_free(&chains->tables);
	vec_free(&chains->places);
	vec_free(&chains->functions);
	vec_free(&chains->marks);
	vec_free(&chains->set.items);
	vec_free(&chains->set.functions);
	cfi_reader__free(chains->reader);
	code_maps__free(chains->maps);
	code_files__free(chains->files);
	free(chains);
}

static int find_code(void *ctx, uint64_t address, struct code_at *code)
{
	struct chains *chains = ctx;

	return code_maps__find(chains->maps, chains->tgid, address, chains->now_ns, code);
}

/* The unwind table of a file, read once. NULL: -ENOMEM. A damaged one counts as missing. */
static const struct elf_fdes *table_of(struct chains *chains, uint32_t module,
				       const struct elf_file *file)
{
	struct table *table;

	while (chains->tables.count <= module)
		if (vec_push(&chains->tables, ((struct table){.read = false})))
			return NULL;
	table = &chains->tables.items[module];
	if (!table->read && elf_fdes_read(&table->fdes, file) == -ENOMEM)
		return NULL;
	table->read = true;
	return &table->fdes;
}

/* The index of a function, which is added if it is new; NO_FUNCTION: there is no room. */
static int add_function(struct chains *chains, uint32_t module, const struct elf_fde *fde,
			uint32_t *index)
{
	struct chain_function function = {module, fde->start, fde->size};
	int err;

	for (size_t i = 0; i < chains->functions.count; i++) {
		const struct chain_function *known = &chains->functions.items[i];

		if (known->module == module && known->start == fde->start) {
			*index = (uint32_t)i;
			return 0;
		}
	}
	*index = NO_FUNCTION;
	if (chains->functions.count == FUNCTIONS_MAX)
		return 0;
	err = vec_push(&chains->marks, 0);
	if (!err)
		err = vec_push(&chains->functions, function);
	if (!err)
		*index = (uint32_t)chains->functions.count - 1;
	return err;
}

/* A piece that the compiler split off is entered by a jump: it is no function of its own. */
static int find_function(struct chains *chains, const struct frame *frame, uint32_t *index)
{
	const struct elf_file *file = code_files__elf(chains->files, frame->module);
	const struct elf_fdes *fdes;
	struct elf_fde fde;

	*index = NO_FUNCTION;
	if (!file)
		return 0;
	fdes = table_of(chains, frame->module, file);
	if (!fdes)
		return -ENOMEM;
	if (elf_fdes_find(fdes, file, frame->address, &fde) || fde.has_frame)
		return 0;
	return add_function(chains, frame->module, &fde, index);
}

static int function_of(struct chains *chains, const struct frame *frame, uint32_t *index)
{
	struct place place = {frame->module, frame->address, NO_FUNCTION};
	size_t at = first_index(i, chains->places.count, ({
					const struct place *known = &chains->places.items[i];
					known->module > place.module ||
						(known->module == place.module &&
						 known->address >= place.address);
				}));
	const struct place *known = chains->places.items + at;
	int err;

	*index = NO_FUNCTION;
	if (!frame->module)
		return 0;
	if (at < chains->places.count && known->module == place.module &&
	    known->address == place.address) {
		*index = known->function;
		return 0;
	}
	err = find_function(chains, frame, &place.function);
	*index = place.function;
	return err ? err : vec_insert(&chains->places, at, place);
}

/* Adds the functions of the frames as one chain. */
static int add_chain(struct chains *chains, uint32_t tid)
{
	struct chain_set *set = &chains->set;
	struct chain chain = {.tid = tid, .first = (uint32_t)set->functions.count};
	uint32_t mark = (uint32_t)set->items.count + 1, index;
	int err = 0;

	for (uint32_t i = chains->unwound.count; i-- && !err;) {
		err = function_of(chains, &chains->unwound.frames[i], &index);
		if (err || index == NO_FUNCTION || chains->marks.items[index] == mark)
			continue;
		chains->marks.items[index] = mark;
		err = vec_push(&set->functions, index);
		chain.count += !err;
	}
	set->function_count = chains->functions.count;
	return err ? err : vec_push(&set->items, chain);
}

int chains__add(struct chains *chains, uint32_t tid, enum fbt_arch arch, const uint64_t *registers,
		uint64_t known, const uint8_t *stack, size_t size)
{
	struct code_finder finder = {find_code, chains};
	struct registers now = {.arch = arch, .known = known};
	struct stack_copy copy = {.data = stack, .size = size};

	memcpy(now.value, registers, sizeof(now.value));
	copy.address = now.value[sp_of(arch)];
	chains->now_ns = clock_ns(CLOCK_MONOTONIC);
	unwind(chains->reader, &finder, &now, &copy, 0, &chains->unwound);
	return add_chain(chains, tid);
}

const struct chain_set *chains__set(const struct chains *chains)
{
	return &chains->set;
}

struct chain_function chains__function(const struct chains *chains, uint32_t index)
{
	return chains->functions.items[index];
}

const char *chains__path(const struct chains *chains, uint32_t module)
{
	return code_files__path(chains->files, module);
}

const char *chains__name(struct chains *chains, uint32_t index)
{
	const struct chain_function *function = &chains->functions.items[index];
	struct code_name name = {.address = function->start};

	code_files__name(chains->files, function->module, &name, 1);
	return name.name;
}
