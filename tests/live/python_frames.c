/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * python_frames PID: reads the Python frames of a process as it is told to, and answers each line
 * with one of JSON. TID is in the PID namespace of the process.
 *
 *	stack TID	{"error", "flags", "frames": [[name, path, line, is_entry] …]}
 *	holder TID	{"tid"}, of the thread that has the GIL for which TID waits
 *	join TID	{"joined", "frames": [name or "name (file:line)" …]}; TID sleeps in a call
 *	torture TID N	{"reads", "found", "moved", "broken", "places": [[name, path, line] …]}
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proc/open.h"
#include "python/frames.h"
#include "python/interpreter.h"
#include "stacks/joined.h"
#include "stacks/maps.h"

#define PLACES_MAX 512

struct reader {
	uint32_t tgid;
	struct python_place place;
	struct python_memory memory;
};

static void write_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void write_frame(const char *before, const struct python_frame *frame)
{
	printf("%s[", before);
	write_text(frame->name);
	printf(", ");
	write_text(frame->path);
	printf(", %" PRIu32 ", %s]", frame->line, frame->is_entry ? "true" : "false");
}

static int read_stack(struct reader *reader, uint32_t tid, struct python_stack *stack)
{
	struct python_look *look = NULL;
	int err = python_look__begin(&look, &reader->memory, &reader->place);

	if (err)
		return err;
	err = python_look__stack(look, tid, stack);
	python_look__end(look);
	return err;
}

static void show_stack(struct reader *reader, uint32_t tid)
{
	static struct python_stack stack;
	int err = read_stack(reader, tid, &stack);

	printf("{\"error\": %d, \"flags\": %" PRIu32 ", \"frames\": [", err, stack.flags);
	for (uint32_t i = 0; !err && i < stack.count; i++)
		write_frame(i ? ", " : "", &stack.frames[i]);
	printf("]}\n");
}

static void show_holder(struct reader *reader, uint32_t tid)
{
	struct python_look *look = NULL;
	uint32_t holder = 0;

	if (!python_look__begin(&look, &reader->memory, &reader->place)) {
		holder = python_look__holder(look, tid);
		python_look__end(look);
	}
	printf("{\"tid\": %" PRIu32 "}\n", holder);
}

struct native {
	struct code_maps *maps;
	uint32_t tgid;
};

static int find_code(void *ctx, uint64_t address, struct code_at *code)
{
	struct native *native = ctx;

	return code_maps__find(native->maps, native->tgid, address, 1, code);
}

/* Where a thread sleeps in a call: its stack and instruction pointers are in /proc. */
static size_t copy_stack(struct reader *reader, uint32_t tid, struct registers *registers,
			 uint8_t *bytes, size_t size)
{
	FILE *file = proc_fopen((struct proc_ref){reader->tgid, tid}, "syscall");
	uint64_t sp, pc;
	size_t got = 0;
	int fields =
		file ? fscanf(file, "%*d %*x %*x %*x %*x %*x %*x %" SCNx64 " %" SCNx64, &sp, &pc)
		     : 0;

	if (file)
		fclose(file);
	if (fields != 2)
		return 0;
	*registers = (struct registers){.arch = FBT_ARCH_X86_64};
	register_set(registers, X86_SP, sp);
	register_set(registers, X86_PC, pc);
	while (got + 4096 <= size && memory_read(&reader->memory, sp + got, bytes + got, 256))
		got += 256;
	return got;
}

static void show_joined(const struct unwound *unwound, struct code_files *files,
			const struct python_stack *stack)
{
	static struct native_function natives[FBT_STACK_FRAMES];
	static struct script_frame frames[PYTHON_FRAMES_MAX];
	static struct joint joints[FBT_STACK_FRAMES + PYTHON_FRAMES_MAX];
	struct script_stack script = {frames, stack->count, stack->flags != 0};
	uint32_t count;

	for (uint32_t i = 0; i < unwound->count; i++) {
		struct code_name name = {.address = unwound->frames[i].address};

		if (unwound->frames[i].module)
			code_files__name(files, unwound->frames[i].module, &name, 1);
		natives[i] = (struct native_function){name.name, !unwound->frames[i].module};
	}
	for (uint32_t i = 0; i < stack->count; i++)
		frames[i].is_entry = stack->frames[i].is_entry;
	count = stacks_join(natives, unwound->count, unwound->end == UNWIND_WHOLE, &script, joints);
	printf("{\"joined\": %s, \"end\": %d, \"frames\": [", count ? "true" : "false",
	       unwound->end);
	for (uint32_t i = 0; i < count; i++) {
		const char *native = natives[joints[i].index].name;
		char text[512];

		if (joints[i].is_script)
			snprintf(text, sizeof(text), "%s (%s:%" PRIu32 ")",
				 stack->frames[joints[i].index].name,
				 stack->frames[joints[i].index].path,
				 stack->frames[joints[i].index].line);
		else
			snprintf(text, sizeof(text), "%s", native ? native : "?");
		printf("%s", i ? ", " : "");
		write_text(text);
	}
	printf("]}\n");
}

static void join(struct reader *reader, uint32_t tid)
{
	static uint8_t bytes[256 << 10];
	static struct python_stack stack;
	static struct unwound unwound;
	struct code_files *files = code_files__new(&(struct symbol_files){NULL, 0});
	struct native native = {code_maps__new(files), reader->tgid};
	struct code_finder finder = {find_code, &native};
	struct cfi_reader *cfi = cfi_reader__new();
	struct registers registers;
	size_t size = copy_stack(reader, tid, &registers, bytes, sizeof(bytes));
	struct stack_copy copy = {registers.value[X86_SP], bytes, size};

	if (!size || read_stack(reader, tid, &stack)) {
		printf("{\"joined\": null}\n");
	} else {
		unwind(cfi, &finder, &registers, &copy, 0, &unwound);
		show_joined(&unwound, files, &stack);
	}
	cfi_reader__free(cfi);
	code_maps__free(native.maps);
	code_files__free(files);
}

static void add_place(struct python_frame *places, uint32_t *count,
		      const struct python_frame *frame)
{
	for (uint32_t i = 0; i < *count; i++)
		if (places[i].line == frame->line && !strcmp(places[i].name, frame->name) &&
		    !strcmp(places[i].path, frame->path))
			return;
	if (*count < PLACES_MAX)
		places[(*count)++] = *frame;
}

static void torture(struct reader *reader, uint32_t tid, uint32_t times)
{
	static struct python_frame places[PLACES_MAX];
	static struct python_stack stack;
	uint32_t count = 0, found = 0, moved = 0, broken = 0, missed[3] = {0};

	for (uint32_t i = 0; i < times; i++) {
		int err = read_stack(reader, tid, &stack);

		if (err) {
			missed[err == -ENOENT ? 0 : err == -EAGAIN ? 1 : 2]++;
			continue;
		}
		found++;
		moved += !!(stack.flags & PYTHON_STACK_MOVED);
		broken += !!(stack.flags & PYTHON_STACK_BROKEN);
		for (uint32_t at = 0; at < stack.count; at++)
			add_place(places, &count, &stack.frames[at]);
	}
	printf("{\"reads\": %" PRIu32 ", \"found\": %" PRIu32 ", \"moved\": %" PRIu32
	       ", \"broken\": %" PRIu32 ", \"missed\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32
	       "], \"places\": [",
	       times, found, moved, broken, missed[0], missed[1], missed[2]);
	for (uint32_t i = 0; i < count; i++)
		write_frame(i ? ", " : "", &places[i]);
	printf("]}\n");
}

static int find_place(struct reader *reader)
{
	struct python_interpreter *interpreter = NULL;
	struct mapping mapping = {.path = NULL};
	bool is_known;

	if (!python_mapping_find(reader->tgid, &mapping) ||
	    python_interpreter_open(&interpreter, reader->tgid, &mapping))
		return -1;
	is_known = python_interpreter_place(interpreter, &mapping, &reader->place);
	python_interpreter_free(interpreter);
	free(mapping.path);
	return is_known ? python_memory_open(&reader->memory, reader->tgid) : -1;
}

int main(int argc, char **argv)
{
	struct reader reader = {.tgid = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0};
	char line[128];

	if (find_place(&reader)) {
		fprintf(stderr, "no interpreter in process %s\n", argc > 1 ? argv[1] : "?");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		char order[16] = "";
		unsigned int tid = 0, times = 0;

		if (sscanf(line, "%15s %u %u", order, &tid, &times) < 2)
			return 2;
		if (!strcmp(order, "stack"))
			show_stack(&reader, tid);
		else if (!strcmp(order, "holder"))
			show_holder(&reader, tid);
		else if (!strcmp(order, "join"))
			join(&reader, tid);
		else if (!strcmp(order, "torture"))
			torture(&reader, tid, times);
		fflush(stdout);
	}
	python_memory_close(&reader.memory);
	return 0;
}
