/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Part of a tool for tests (live_dwfl): the tool itself, in which each stack that the kernel side
 * has copied is unwound by libdwfl too, from the same registers and bytes. What the two found is a
 * line of JSON in the file that DWFL_LOG names.
 */
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/syscalls.h"
#include "stacks/maps.h"
#include "stacks/stacks.h"

#define FRAMES_MAX    256
#define PROCESSES_MAX 16

void __real_stacks__take(struct stacks *stacks, const struct fbt_stack_place *place,
			 uint64_t now_ns);
void __wrap_stacks__take(struct stacks *stacks, const struct fbt_stack_place *place,
			 uint64_t now_ns);

struct place {
	uint32_t tgid;
	struct registers registers;
	struct stack_copy copy;
};

struct found {
	uint64_t pcs[FRAMES_MAX]; /* of calls, and of interrupted instructions */
	size_t count;
};

/* What is known of a process. */
struct process {
	uint32_t tgid;
	Dwfl *dwfl;
};

static struct {
	FILE *log;
	struct process processes[PROCESSES_MAX];
	struct place place; /* the stack that is unwound */
	struct code_files *files;
	struct code_maps *maps;
	struct cfi_reader *reader;
	struct unwound unwound;
	uint64_t now_ns;
} check;

/* Before the tool gives up its rights. */
__attribute__((constructor)) static void open_log(void)
{
	const char *path = getenv("DWFL_LOG");

	check.log = path ? fopen(path, "ae") : NULL;
}

/* The file that is mapped there, whatever its path names by now: also of other mounts, or deleted.
 */
static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	char folder[64], start[32], path[512];
	struct dirent *entry;
	DIR *files;
	int fd = -1;

	snprintf(folder, sizeof(folder), "/proc/%u/map_files", check.place.tgid);
	snprintf(start, sizeof(start), "%lx-", (unsigned long)base);
	files = opendir(folder);
	while (files && fd < 0 && (entry = readdir(files))) {
		if (strncmp(entry->d_name, start, strlen(start)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (files)
		closedir(files);
	if (fd < 0)
		return dwfl_linux_proc_find_elf(module, data, name, base, file_name, elf);
	*file_name = strdup(path);
	return fd;
}

static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **found)
{
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *ctx, void **thread)
{
	if (*thread)
		return 0;
	*thread = ctx;
	return (pid_t)check.place.tgid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *ctx, void **thread)
{
	*thread = ctx;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *ctx)
{
	uint64_t value;

	if (!stack_word(&check.place.copy, address, &value))
		return false;
	*word = value;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *ctx)
{
	const struct registers *registers = &check.place.registers;
	unsigned int pc = pc_of(registers->arch);
	Dwarf_Word words[FBT_REGISTERS];

	for (unsigned int i = 0; i <= pc; i++)
		words[i] = registers->value[i];
	if (registers->arch == FBT_ARCH_X86_64)
		return dwfl_thread_state_registers(thread, 0, (int)pc + 1, words);
	dwfl_thread_state_register_pc(thread, words[pc]);
	return dwfl_thread_state_registers(thread, 0, (int)pc, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_no_debuginfo,
};

static struct process *find_process(uint32_t tgid)
{
	struct process *process = check.processes;

	while (process < check.processes + PROCESSES_MAX - 1 && process->tgid &&
	       process->tgid != tgid)
		process++;
	if (process->tgid != tgid && process->dwfl) {
		dwfl_end(process->dwfl);
		process->dwfl = NULL;
	}
	process->tgid = tgid;
	return process;
}

/* Reads what the process has mapped by now. False: it has ended, what was known stays. */
static bool read_process(struct process *process)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl || dwfl_linux_proc_report(dwfl, (pid_t)process->tgid) ||
	    dwfl_report_end(dwfl, NULL, NULL) ||
	    !dwfl_attach_state(dwfl, NULL, (pid_t)process->tgid, &thread_callbacks, &check)) {
		dwfl_end(dwfl);
		return false;
	}
	if (process->dwfl)
		dwfl_end(process->dwfl);
	process->dwfl = dwfl;
	return true;
}

static int take_frame(Dwfl_Frame *frame, void *ctx)
{
	struct found *found = ctx;
	bool is_activation;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &is_activation) || found->count == FRAMES_MAX)
		return DWARF_CB_ABORT;
	found->pcs[found->count++] = pc - !is_activation;
	return DWARF_CB_OK;
}

static int find_code(void *ctx, uint64_t address, struct code_at *code)
{
	return code_maps__find(check.maps, check.place.tgid, address, check.now_ns, code);
}

static bool prepare(void)
{
	if (check.reader)
		return true;
	check.reader = cfi_reader__new();
	check.files = code_files__new(&(struct symbol_files){NULL, 0});
	check.maps = code_maps__new(check.files);
	return check.reader && check.maps;
}

static bool is_same(const struct frame *frame, uint64_t pc)
{
	struct code_at code = {.address = pc};

	(void)find_code(NULL, pc, &code);
	return frame->module == code.module && frame->address == code.address;
}

/*
 * Of a step's stack libdwfl may find the step's caller too, whose address is the last word of the
 * copy, and what it takes for that one's. Other stacks have the same length.
 */
static const char *compare(const struct found *theirs, bool has_step)
{
	const struct unwound *ours = &check.unwound;

	for (size_t i = 0; i < ours->count && i < theirs->count; i++)
		if (!is_same(&ours->frames[i], theirs->pcs[i]))
			return "other";
	if (theirs->count < ours->count)
		return "longer";
	if (theirs->count > ours->count && !(has_step && ours->end == UNWIND_WHOLE))
		return "shorter";
	return "equal";
}

static void write_line(const struct fbt_stack_place *place, const char *verdict,
		       const struct found *theirs)
{
	fprintf(check.log,
		"{\"verdict\": \"%s\", \"pid\": %u, \"tid\": %u, \"nr\": %u, \"bytes\": %u, "
		"\"step\": %d, \"end\": %d, \"guessed\": %d, \"waker\": %d, \"ours\": [",
		verdict, place->tgid, place->owner, place->nr, place->bytes, !!place->step_sp,
		(int)check.unwound.end, check.unwound.guessed, place->owner != place->tid);
	for (size_t i = 0; i < check.unwound.count; i++) {
		const struct frame *frame = &check.unwound.frames[i];

		fprintf(check.log, "%s[\"%s\", %llu]", i ? ", " : "",
			frame->module ? code_files__path(check.files, frame->module) : "",
			(unsigned long long)frame->address);
	}
	fprintf(check.log, "], \"theirs\": [");
	for (size_t i = 0; i < theirs->count; i++)
		fprintf(check.log, "%s%llu", i ? ", " : "", (unsigned long long)theirs->pcs[i]);
	fprintf(check.log, "]}\n");
	fflush(check.log);
}

static const char *unwind_theirs(struct process *process, bool has_step, struct found *theirs)
{
	theirs->count = 0;
	if (!process->dwfl)
		return "gone";
	dwfl_getthread_frames(process->dwfl, (pid_t)process->tgid, take_frame, theirs);
	return compare(theirs, has_step);
}

static void hold_against(const struct fbt_stack_place *place, uint64_t now_ns)
{
	struct registers *registers = &check.place.registers;
	struct code_finder finder = {find_code, NULL};
	struct process *process = find_process(place->tgid);
	struct found theirs;
	const char *verdict;

	*registers = (struct registers){.arch = syscalls_arch()};
	memcpy(registers->value, place->registers, sizeof(registers->value));
	registers->known = (2ull << pc_of(registers->arch)) - 1;
	check.place.tgid = place->tgid;
	check.place.copy = (struct stack_copy){registers->value[sp_of(registers->arch)],
					       place->stack, place->bytes};
	check.now_ns = now_ns;
	unwind(check.reader, &finder, registers, &check.place.copy, place->step_sp, &check.unwound);
	verdict = unwind_theirs(process, place->step_sp, &theirs);
	/* It may have loaded a library since it was read. */
	if (strcmp(verdict, "equal") != 0 && read_process(process))
		verdict = unwind_theirs(process, place->step_sp, &theirs);
	write_line(place, verdict, &theirs);
}

void __wrap_stacks__take(struct stacks *stacks, const struct fbt_stack_place *place,
			 uint64_t now_ns)
{
	if (check.log && prepare())
		hold_against(place, now_ns);
	__real_stacks__take(stacks, place, now_ns);
}
