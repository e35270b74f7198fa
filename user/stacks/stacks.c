/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/stacks.h"

#include "base/log.h"
#include "base/vec.h"
#include "fbt_python.h"
#include "model/syscalls.h"
#include "stacks/files.h"
#include "stacks/joined.h"
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
	bool told; /* that no more can be sent */
	/* The stack that is taken. */
	uint32_t tgid;
	uint64_t now_ns;
	struct unwound unwound;
	struct fbt_stack record;
};

static void forget_file(void *ctx, uint32_t module, const struct elf_file *elf);

struct stacks *stacks__new(const struct record_output *output, const struct symbol_files *symbols)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->output = output;
	stacks->reader = cfi_reader__new();
	stacks->scripts = script_names__new();
	stacks->files = code_files__new(symbols);
	if (stacks->files) {
		code_files__set_forgetter(stacks->files,
					  &(struct code_forgetter){forget_file, stacks});
		stacks->maps = code_maps__new(stacks->files);
	}
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

/* Its places are of another file from now on. What was sent of them stays true. */
static void forget_file(void *ctx, uint32_t module, const struct elf_file *elf)
{
	struct stacks *stacks = ctx;
	size_t first = place_of(stacks, module, 0), after = place_of(stacks, module + 1, 0);

	cfi_reader__forget(stacks->reader, elf);
	for (size_t i = first; i < after; i++)
		stacks->abouts.items[stacks->known.items[i].id - 1] = (struct code_about){NULL};
	if (after > first)
		memmove(stacks->known.items + first, stacks->known.items + after,
			(stacks->known.count - after) * sizeof(*stacks->known.items));
	stacks->known.count -= after - first;
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

/*
 * An id is never given to another place, as stacks that were sent have it. Places without one are 0
 * in stacks, where the window counts them.
 */
static bool has_room(struct stacks *stacks)
{
	if (stacks->ids < CODES_MAX)
		return true;
	if (!stacks->told)
		log_warn("stacks had code at more than %d places: functions at further ones have "
			 "no names in stacks",
			 CODES_MAX);
	stacks->told = true;
	return false;
}

/* Sends the record of a new place; false: there is no room or no memory for it. */
static bool send_code(struct stacks *stacks, struct fbt_code *code, const char *const strings[3])
{
	struct code_about about = {strings[0], strings[1]};

	code->id = stacks->ids + 1;
	code->tgid = stacks->tgid;
	if (!has_room(stacks) || vec_push(&stacks->abouts, about))
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
	if (!id_of(stacks, frame) && send_code(stacks, &code, strings) &&
	    vec_insert(&stacks->known, place_of(stacks, known.owner, known.address), known))
		stacks->abouts.items[known.id - 1] = (struct code_about){NULL};
}

/* Sends the places of one file that are new, named together, from a frame on outwards. */
static void send_file(struct stacks *stacks, uint32_t module, uint32_t first)
{
	struct code_name names[FBT_STACK_FRAMES];
	size_t count = 0;

	for (uint32_t i = first; i < stacks->unwound.count; i++) {
		const struct frame *frame = &stacks->unwound.frames[i];

		if (frame->module == module && !id_of(stacks, frame))
			names[count++] = (struct code_name){.address = frame->address};
	}
	if (!has_room(stacks))
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

static void put_code(struct stack_codes *codes, uint32_t id)
{
	if (codes->count < FBT_STACK_FRAMES)
		codes->codes[codes->count++] = id;
	else
		codes->flags |= FBT_STACK_CUT;
}

/* Those of the script come after the native ones if the two do not fit. */
static void put_apart(struct stacks *stacks, const struct script_stack *script,
		      struct stack_codes *codes)
{
	/* There must be room for both. */
	if (codes->count > FBT_STACK_FRAMES / 2 && script->count) {
		codes->count = FBT_STACK_FRAMES / 2;
		codes->flags |= FBT_STACK_CUT;
	}
	codes->flags |= FBT_STACK_APART;
	for (size_t i = 0; i < script->count; i++)
		put_code(codes, id_of_script(stacks, &script->frames[i]));
}

static void put_joined(struct stacks *stacks, const struct script_stack *script, bool is_whole,
		       struct stack_codes *codes)
{
	struct native_function natives[FBT_STACK_FRAMES];
	struct joint joints[2 * FBT_STACK_FRAMES];
	struct stack_codes native = *codes;
	uint32_t count;

	for (uint32_t i = 0; i < native.count; i++) {
		struct code_about about;

		natives[i] = (struct native_function){0};
		if (stacks__about(stacks, native.codes[i], &about))
			natives[i] = (struct native_function){about.function, !about.path};
	}
	count = stacks_join(natives, native.count, is_whole, script, joints);
	if (!count) {
		put_apart(stacks, script, codes);
		return;
	}
	codes->count = 0;
	for (uint32_t i = 0; i < count; i++)
		put_code(codes, joints[i].is_script
					? id_of_script(stacks, &script->frames[joints[i].index])
					: native.codes[joints[i].index]);
}

static bool has_interpreter(const struct stacks *stacks, const struct stack_codes *codes)
{
	struct code_about about;

	for (uint32_t i = 0; i < codes->count; i++)
		if (stacks__about(stacks, codes->codes[i], &about) &&
		    script_is_interpreter(about.function))
			return true;
	return false;
}

/* Puts the functions of a script where its interpreter's stand. */
static void add_scripts(struct stacks *stacks, const struct stack_source *source,
			struct stack_codes *codes)
{
	const struct script_reader *reader = &stacks->script_reader;
	struct script_frame frames[FBT_STACK_FRAMES / 2];
	struct script_stack script = {.frames = frames};
	uint32_t flags = 0;

	if (!reader->read || !has_interpreter(stacks, codes))
		return;
	script.count = reader->read(reader->ctx, source->tgid, source->tid, frames,
				    sizeof(frames) / sizeof(frames[0]), &flags);
	if (!script.count)
		return;
	script.is_partial = flags & SCRIPT_PARTIAL;
	if (flags & SCRIPT_MOVED) {
		codes->flags |= FBT_STACK_MOVED;
		put_apart(stacks, &script, codes);
	} else {
		put_joined(stacks, &script, !source->step_sp && stacks->unwound.end == UNWIND_WHOLE,
			   codes);
	}
}

uint32_t stacks__script_holder(const struct stacks *stacks, uint32_t tgid, uint32_t tid,
			       uint64_t lock)
{
	const struct script_reader *reader = &stacks->script_reader;

	return reader->holder ? reader->holder(reader->ctx, tgid, tid, lock) : 0;
}

static void unwind_source(struct stacks *stacks, const struct stack_source *source, uint64_t now_ns)
{
	struct code_finder finder = {find_code, stacks};
	struct registers registers;
	struct stack_copy copy;

	read_registers(source->registers, &registers);
	copy = (struct stack_copy){registers.value[sp_of(registers.arch)], source->stack,
				   source->bytes};
	stacks->tgid = source->tgid;
	stacks->now_ns = now_ns;
	unwind(stacks->reader, &finder, &registers, &copy, source->step_sp, &stacks->unwound);
	explicit_bzero(&registers, sizeof(registers));
}

void stacks__unwind(struct stacks *stacks, const struct stack_source *source, uint64_t now_ns,
		    struct stack_codes *codes)
{
	struct unwound *unwound = &stacks->unwound;

	unwind_source(stacks, source, now_ns);
	for (uint32_t i = 0; i < unwound->count; i++)
		if (!id_of(stacks, &unwound->frames[i]))
			send_file(stacks, unwound->frames[i].module, 0);
	codes->flags = flags_of(unwound);
	codes->count = unwound->count;
	for (uint32_t i = 0; i < unwound->count; i++)
		codes->codes[i] = id_of(stacks, &unwound->frames[i]);
	/* What the thread was in when its stack was copied is not known any more. */
	if (source->is_present)
		add_scripts(stacks, source, codes);
}

/* Of a stack that was copied: what the thread is in now is not known. */
static struct stack_source source_of(const struct fbt_stack_place *place)
{
	return (struct stack_source){.tgid = place->tgid,
				     .tid = place->owner,
				     .registers = place->registers,
				     .stack = place->stack,
				     .bytes = place->bytes < FBT_STACK_BYTES ? place->bytes
									     : FBT_STACK_BYTES,
				     .step_sp = place->step_sp};
}

/* The same place in each sample of a function: its begin. */
static uint32_t send_function(struct stacks *stacks, uint32_t module, const struct code_name *name)
{
	struct frame begin = {module, name->start};
	struct code_name named = *name;

	named.address = name->start;
	send_native(stacks, &begin, &named);
	return id_of(stacks, &begin);
}

/* Sets code to that of the innermost function with a name, from frame *at on outwards. */
static bool find_function(struct stacks *stacks, uint32_t *at, uint32_t *code)
{
	for (; *at < stacks->unwound.count; ++*at) {
		const struct frame *frame = &stacks->unwound.frames[*at];
		struct code_name name = {.address = frame->address};

		if (!frame->module)
			continue;
		code_files__name(stacks->files, frame->module, &name, 1);
		if (name.name) {
			*code = send_function(stacks, frame->module, &name);
			return true;
		}
	}
	return false;
}

/* The index of the innermost call of the interpreter; count: there is none. */
static uint32_t find_interpreter(const struct stacks *stacks, const struct stack_codes *codes,
				 struct code_about *interpreter)
{
	uint32_t at = 0;

	while (at < codes->count && !(stacks__about(stacks, codes->codes[at], interpreter) &&
				      script_is_interpreter(interpreter->function)))
		at++;
	return at;
}

/* What the script had called, but for the interpreter's own functions, and the script itself. */
static void put_script(struct stacks *stacks, const struct fbt_stack_place *place,
		       struct stack_codes *codes)
{
	const struct script_reader *reader = &stacks->script_reader;
	struct script_frame frames[FBT_STACK_FRAMES / 2];
	struct code_about interpreter, about;
	uint32_t flags = 0, end, kept = 0;
	size_t count;

	end = reader->read ? find_interpreter(stacks, codes, &interpreter) : codes->count;
	if (end == codes->count)
		return;
	count = reader->read(reader->ctx, place->tgid, place->tid, frames,
			     sizeof(frames) / sizeof(frames[0]), &flags);
	/* The library's own function calls that of the step next: nothing is left of the step. */
	if (!count || (count == 1 && frames[0].file && !strcmp(frames[0].file, FBT_PYTHON_FILE)))
		return;
	for (uint32_t i = 0; i < end; i++) {
		bool is_own = stacks__about(stacks, codes->codes[i], &about) && about.path &&
			      interpreter.path && !strcmp(about.path, interpreter.path);

		if (!is_own)
			codes->codes[kept++] = codes->codes[i];
	}
	codes->count = kept;
	/* Its own line is another one in each sample. */
	if (!kept)
		frames[0].line = 0;
	for (size_t i = 0; i < count; i++)
		if (!frames[i].file || strcmp(frames[i].file, FBT_PYTHON_FILE) != 0)
			put_code(codes, id_of_script(stacks, &frames[i]));
	/* The script is whole though the copy of the native stack was not. */
	codes->flags = (uint16_t)((codes->flags & FBT_STACK_GUESSED) |
				  (flags & SCRIPT_PARTIAL ? FBT_STACK_CUT : 0));
}

void stacks__sample(struct stacks *stacks, const struct fbt_stack_place *place, bool is_present,
		    uint64_t now_ns, struct stack_codes *codes)
{
	struct stack_source source = source_of(place);
	struct unwound *unwound = &stacks->unwound;
	uint32_t at = 0, function = 0;

	unwind_source(stacks, &source, now_ns);
	codes->flags = flags_of(unwound);
	codes->count = 0;
	/* The place itself is another one in each sample. */
	if (!find_function(stacks, &at, &function))
		at = 0;
	put_code(codes, function);
	for (uint32_t i = at + 1; i < unwound->count; i++) {
		const struct frame *frame = &unwound->frames[i];

		if (!id_of(stacks, frame))
			send_file(stacks, frame->module, at + 1);
		put_code(codes, id_of(stacks, frame));
	}
	if (is_present)
		put_script(stacks, place, codes);
}

void stacks__functions(struct stacks *stacks, const struct fbt_stack_place *place, uint64_t now_ns,
		       uint32_t *codes, uint32_t max)
{
	struct stack_source source = source_of(place);
	uint32_t count = 0;

	memset(codes, 0, max * sizeof(*codes));
	unwind_source(stacks, &source, now_ns);
	for (uint32_t at = 0; count < max && find_function(stacks, &at, &codes[count]); at++)
		count++;
}

void stacks__take(struct stacks *stacks, const struct fbt_stack_place *place, uint64_t now_ns)
{
	uint32_t nr = place->nr < FBT_NR_COUNT ? place->nr : FBT_NR_COUNT - 1;
	struct stack_source source = source_of(place);
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
