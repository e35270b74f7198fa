/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/stacks.h"

#include "base/vec.h"
#include "model/syscalls.h"
#include "stacks/files.h"
#include "stacks/maps.h"
#include "stacks/script.h"
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
	VEC(struct known) known;       /* by owner and address */
	VEC(struct code_about) abouts; /* by id, from 1 */
	struct script_names *scripts;
	struct script_reader script_reader;
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
	stacks->scripts = script_names__new();
	stacks->files = code_files__new();
	if (stacks->files)
		stacks->maps = code_maps__new(stacks->files);
	if (!stacks->reader || !stacks->maps || !stacks->scripts) {
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
	vec_free(&stacks->abouts);
	script_names__free(stacks->scripts);
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

/* Sends the record of a new place; false: there is no room or no memory for it. */
static bool send_code(struct stacks *stacks, struct fbt_code *code, const char *const strings[3])
{
	struct code_about about = {strings[0], strings[1]};

	code->id = stacks->ids + 1;
	code->tgid = stacks->tgid;
	if (stacks->ids == CODES_MAX || vec_push(&stacks->abouts, about))
		return false;
	if (record_send_strings(stacks->output, code, sizeof(*code), FBT_EVENT_CODE, strings, 3)) {
		stacks->abouts.count--;
		return false;
	}
	stacks->ids++;
	return true;
}

static void send_native(struct stacks *stacks, const struct frame *frame,
			const struct code_name *name)
{
	struct fbt_code code = {.address = frame->address,
				.offset = name->name ? frame->address - name->start : 0};
	const char *strings[] = {
		name->name,
		frame->module ? code_files__path(stacks->files, frame->module) : NULL,
		frame->module ? code_files__build_id(stacks->files, frame->module) : NULL,
	};
	struct known known = {owner_of(stacks, frame), stacks->ids + 1, frame->address};

	/* Without memory it is sent again when it is met again. */
	if (!id_of(stacks, frame) && send_code(stacks, &code, strings))
		(void)vec_insert(&stacks->known, place_of(stacks, known.owner, known.address),
				 known);
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
	if (stacks->ids == CODES_MAX)
		return;
	if (module && count)
		code_files__name(stacks->files, module, names, count);
	for (size_t i = 0; i < count; i++) {
		struct frame frame = {module, names[i].address};

		send_native(stacks, &frame, &names[i]);
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

static void read_registers(const __u64 from[FBT_REGISTERS], struct registers *registers)
{
	*registers = (struct registers){.arch = syscalls_arch()};
	memcpy(registers->value, from, sizeof(registers->value));
	registers->known = (2ull << pc_of(registers->arch)) - 1;
}

uint64_t stack_source_sp(const __u64 registers[FBT_REGISTERS])
{
	return registers[sp_of(syscalls_arch())];
}

bool stacks__about(const struct stacks *stacks, uint32_t id, struct code_about *about)
{
	*about = (struct code_about){NULL, NULL};
	if (!id || id > stacks->abouts.count)
		return false;
	*about = stacks->abouts.items[id - 1];
	return true;
}

void stacks__set_script_reader(struct stacks *stacks, const struct script_reader *reader)
{
	stacks->script_reader = *reader;
}

/* 0: there is no room for it. Its strings are kept by scripts. */
static uint32_t id_of_script(struct stacks *stacks, const struct script_frame *frame)
{
	struct fbt_code code = {.header.flags = FBT_CODE_SCRIPT, .address = frame->line};
	struct script_name *name = script_names__find(stacks->scripts, frame);

	if (!name)
		return 0;
	if (!name->id &&
	    send_code(stacks, &code, (const char *const[]){name->function, name->file, NULL}))
		name->id = stacks->ids;
	return name->id;
}

/*
 * Puts the functions of a script where its interpreter's stand. One call of the interpreter may run
 * several of them, the last of which was entered from C.
 */
static void add_scripts(struct stacks *stacks, const struct stack_source *source,
			struct stack_codes *codes)
{
	const struct script_reader *reader = &stacks->script_reader;
	struct script_frame frames[FBT_STACK_FRAMES];
	uint32_t native[FBT_STACK_FRAMES], count = codes->count;
	size_t read = 0, next = 0;
	bool has_read = false;

	if (!reader->read || !source->ns_tid)
		return;
	memcpy(native, codes->codes, count * sizeof(*native));
	codes->count = 0;
	for (uint32_t i = 0; i < count && codes->count < FBT_STACK_FRAMES; i++) {
		struct code_about about;
		bool is_eval = stacks__about(stacks, native[i], &about) &&
			       script_is_interpreter(about.function);

		if (is_eval && !has_read)
			read = reader->read(reader->ctx, source->tgid, source->ns_tid, frames,
					    FBT_STACK_FRAMES);
		has_read |= is_eval;
		if (!is_eval || next == read) {
			codes->codes[codes->count++] = native[i];
			continue;
		}
		do
			codes->codes[codes->count++] = id_of_script(stacks, &frames[next]);
		while (!frames[next++].is_entry && next < read && codes->count < FBT_STACK_FRAMES);
	}
}

void stacks__unwind(struct stacks *stacks, const struct stack_source *source, uint64_t now_ns,
		    struct stack_codes *codes)
{
	struct code_finder finder = {find_code, stacks};
	struct unwound *unwound = &stacks->unwound;
	struct registers registers;
	struct stack_copy copy;

	read_registers(source->registers, &registers);
	copy = (struct stack_copy){registers.value[sp_of(registers.arch)], source->stack,
				   source->bytes};
	stacks->tgid = source->tgid;
	stacks->now_ns = now_ns;
	unwind(stacks->reader, &finder, &registers, &copy, source->step_sp, unwound);
	explicit_bzero(&registers, sizeof(registers));
	for (uint32_t i = 0; i < unwound->count; i++)
		if (!id_of(stacks, &unwound->frames[i]))
			send_file(stacks, unwound->frames[i].module);
	codes->flags = flags_of(unwound);
	codes->count = unwound->count;
	for (uint32_t i = 0; i < unwound->count; i++)
		codes->codes[i] = id_of(stacks, &unwound->frames[i]);
	add_scripts(stacks, source, codes);
}

void stacks__take(struct stacks *stacks, const struct fbt_stack_place *place, uint64_t now_ns)
{
	uint32_t nr = place->nr < FBT_NR_COUNT ? place->nr : FBT_NR_COUNT - 1;
	struct stack_source source = {.tgid = place->tgid,
				      .registers = place->registers,
				      .stack = place->stack,
				      .bytes = place->bytes < FBT_STACK_BYTES ? place->bytes
									      : FBT_STACK_BYTES,
				      .step_sp = place->step_sp};
	struct stack_codes codes;

	stacks__unwind(stacks, &source, now_ns, &codes);
	stacks->record = (struct fbt_stack){
		.header.flags = codes.flags | (place->owner != place->tid ? FBT_STACK_WAKER : 0),
		.owner = place->owner,
		.tgid = place->tgid,
		.tid = place->tid,
		.start_ns = place->start_ns,
		.nr = nr,
		.count = codes.count};
	memcpy(stacks->record.codes, codes.codes, codes.count * sizeof(*codes.codes));
	record_send(stacks->output, &stacks->record, sizeof(stacks->record), FBT_EVENT_STACK);
}
