/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/stacks.h"

#include "base/vec.h"
#include "model/syscalls.h"
#include "stacks/files.h"
#include "stacks/maps.h"
#include "stacks/unwind.h"

#define CODES_MAX 65536

/* A place of code that was sent. That of no file belongs to its process. */
struct known {
	uint32_t owner;
	uint32_t id;
	uint64_t address;
};

#define OWNER_PROCESS 0x80000000u

struct stacks {
	const struct record_output *output;
	struct cfi_reader *reader;
	struct code_files *files;
	struct code_maps *maps;
	VEC(struct known) known; /* by owner and address */
	uint32_t ids;
	/* The stack that is taken. */
	uint32_t tgid;
	uint64_t now_ns;
	struct unwound unwound;
	struct fbt_stack record;
};

struct stacks *stacks__new(const struct record_output *output)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->output = output;
	stacks->reader = cfi_reader__new();
	stacks->files = code_files__new();
	if (stacks->files)
		stacks->maps = code_maps__new(stacks->files);
	if (!stacks->reader || !stacks->maps) {
		stacks__free(stacks);
		return NULL;
	}
	return stacks;
}

void stacks__free(struct stacks *stacks)
{
	if (!stacks)
		return;
	cfi_reader__free(stacks->reader);
	code_maps__free(stacks->maps);
	code_files__free(stacks->files);
	vec_free(&stacks->known);
	free(stacks);
}

void stacks__forget(struct stacks *stacks, uint32_t tgid)
{
	code_maps__forget(stacks->maps, tgid);
}

static int find_code(void *ctx, uint64_t address, struct code_at *code)
{
	struct stacks *stacks = ctx;

	return code_maps__find(stacks->maps, stacks->tgid, address, stacks->now_ns, code);
}

static uint32_t owner_of(const struct stacks *stacks, const struct frame *frame)
{
	return frame->module ? frame->module : OWNER_PROCESS | stacks->tgid;
}

static size_t place_of(const struct stacks *stacks, uint32_t owner, uint64_t address)
{
	return first_index(i, stacks->known.count, ({
				   const struct known *known = &stacks->known.items[i];
				   known->owner > owner ||
					   (known->owner == owner && known->address >= address);
			   }));
}

/* 0: it was not sent. */
static uint32_t id_of(const struct stacks *stacks, const struct frame *frame)
{
	uint32_t owner = owner_of(stacks, frame);
	size_t at = place_of(stacks, owner, frame->address);
	const struct known *known = stacks->known.items + at;

	if (at == stacks->known.count || known->owner != owner || known->address != frame->address)
		return 0;
	return known->id;
}

static void send_code(struct stacks *stacks, const struct frame *frame,
		      const struct code_name *name)
{
	struct fbt_code code = {.id = stacks->ids + 1,
				.tgid = stacks->tgid,
				.address = frame->address,
				.offset = name->name ? frame->address - name->start : 0};
	const char *strings[] = {
		name->name,
		frame->module ? code_files__path(stacks->files, frame->module) : NULL,
		frame->module ? code_files__build_id(stacks->files, frame->module) : NULL,
	};
	struct known known = {owner_of(stacks, frame), code.id, frame->address};
	size_t at = place_of(stacks, known.owner, known.address);

	if (stacks->known.count == CODES_MAX || id_of(stacks, frame) ||
	    record_send_strings(stacks->output, &code, sizeof(code), FBT_EVENT_CODE, strings, 3) ||
	    vec_insert(&stacks->known, at, known))
		return;
	stacks->ids++;
}

/* Sends the places of one file that are new, named together. */
static void send_file(struct stacks *stacks, uint32_t module)
{
	struct code_name names[FBT_STACK_FRAMES];
	size_t count = 0;

	for (uint32_t i = 0; i < stacks->unwound.count; i++) {
		const struct frame *frame = &stacks->unwound.frames[i];

		if (frame->module == module && !id_of(stacks, frame))
			names[count++] = (struct code_name){.address = frame->address};
	}
	if (stacks->known.count == CODES_MAX)
		return;
	if (module && count)
		code_files__name(stacks->files, module, names, count);
	for (size_t i = 0; i < count; i++) {
		struct frame frame = {module, names[i].address};

		send_code(stacks, &frame, &names[i]);
	}
}

static uint16_t flags_of(const struct unwound *unwound)
{
	uint16_t flags = unwound->guessed ? FBT_STACK_GUESSED : 0;

	switch (unwound->end) {
	case UNWIND_WHOLE:
		break;
	case UNWIND_CUT:
	case UNWIND_DEEP:
		flags |= FBT_STACK_CUT;
		break;
	case UNWIND_LOST:
		flags |= FBT_STACK_LOST;
		break;
	}
	return flags;
}

static void read_registers(const struct fbt_stack_place *place, struct registers *registers)
{
	*registers = (struct registers){.arch = syscalls_arch()};
	memcpy(registers->value, place->registers, sizeof(registers->value));
	registers->known = (2ull << pc_of(registers->arch)) - 1;
}

static void unwind_place(struct stacks *stacks, const struct fbt_stack_place *place,
			 uint64_t now_ns)
{
	struct code_finder finder = {find_code, stacks};
	struct registers registers;
	struct stack_copy copy;

	read_registers(place, &registers);
	copy = (struct stack_copy){registers.value[sp_of(registers.arch)], place->stack,
				   place->bytes < FBT_STACK_BYTES ? place->bytes : FBT_STACK_BYTES};
	stacks->tgid = place->tgid;
	stacks->now_ns = now_ns;
	unwind(stacks->reader, &finder, &registers, &copy, place->step_sp, &stacks->unwound);
}

/* The same place in each sample of a function: its begin. */
static uint32_t send_function(struct stacks *stacks, uint32_t module, const struct code_name *name)
{
	struct frame begin = {module, name->start};
	struct code_name named = *name;

	named.address = name->start;
	if (!id_of(stacks, &begin))
		send_code(stacks, &begin, &named);
	return id_of(stacks, &begin);
}

uint32_t stacks__function(struct stacks *stacks, const struct fbt_stack_place *place,
			  uint64_t now_ns)
{
	unwind_place(stacks, place, now_ns);
	for (uint32_t i = 0; i < stacks->unwound.count; i++) {
		const struct frame *frame = &stacks->unwound.frames[i];
		struct code_name name = {.address = frame->address};

		if (!frame->module)
			continue;
		code_files__name(stacks->files, frame->module, &name, 1);
		if (name.name)
			return send_function(stacks, frame->module, &name);
	}
	return 0;
}

void stacks__take(struct stacks *stacks, const struct fbt_stack_place *place, uint64_t now_ns)
{
	struct unwound *unwound = &stacks->unwound;
	uint32_t nr = place->nr < FBT_NR_COUNT ? place->nr : FBT_NR_COUNT - 1;

	unwind_place(stacks, place, now_ns);
	for (uint32_t i = 0; i < unwound->count; i++)
		if (!id_of(stacks, &unwound->frames[i]))
			send_file(stacks, unwound->frames[i].module);
	stacks->record = (struct fbt_stack){
		.header.flags =
			flags_of(unwound) | (place->owner != place->tid ? FBT_STACK_WAKER : 0),
		.owner = place->owner,
		.tgid = place->tgid,
		.tid = place->tid,
		.start_ns = place->start_ns,
		.nr = nr,
		.count = unwound->count};
	for (uint32_t i = 0; i < unwound->count; i++)
		stacks->record.codes[i] = id_of(stacks, &unwound->frames[i]);
	record_send(stacks->output, &stacks->record, sizeof(stacks->record), FBT_EVENT_STACK);
}
