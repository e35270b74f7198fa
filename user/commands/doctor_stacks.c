/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_stacks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc/maps.h"
#include "proc/namespace.h"
#include "proc/process.h"
#include "sandbox/privilege.h"
#include "steps/image.h"

#define NAMES_SHOWN 4
#define NAME_SHOWN  40

static void add_code(struct doctor_code *code, const struct mapping *mapping)
{
	size_t used = strlen(code->names);

	if (code->count++ < NAMES_SHOWN)
		snprintf(code->names + used, sizeof(code->names) - used, "%s%.*s", used ? ", " : "",
			 NAME_SHOWN, mapping_name(mapping));
}

static bool has_names(struct elf_file *elf, uint32_t tgid, const char *path,
		      const struct symbol_files *symbols)
{
	struct elf_file *debug = NULL;
	struct elf_section section;
	int fd;

	if (!elf_file__find_section(elf, SHT_SYMTAB, &section))
		return true;
	fd = debug_file_find(elf, tgid, path, symbols, DEBUG_FILE_CHECKSUM_AT_ONCE, &debug, NULL);
	elf_file__free(debug);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void read_file(struct doctor_stacks *stacks, uint32_t tgid, const struct mapping *mapping,
		      const struct symbol_files *symbols)
{
	struct elf_file *elf = NULL;
	Elf64_Phdr header;
	int fd = mapping_open(tgid, mapping);

	stacks->all++;
	if (fd < 0) {
		add_code(mapping->deleted ? &stacks->deleted : &stacks->hidden, mapping);
		return;
	}
	if (elf_file__open(&elf, fd)) {
		add_code(&stacks->no_elf, mapping);
	} else {
		if (elf_file__segment(elf, PT_GNU_EH_FRAME, &header))
			add_code(&stacks->tableless, mapping);
		if (!has_names(elf, tgid, mapping->path, symbols))
			add_code(&stacks->nameless, mapping);
		elf_file__free(elf);
	}
	close(fd);
}

static bool was_met(const mapping_vec *maps, const struct mapping *mapping)
{
	for (const struct mapping *earlier = maps->items; earlier < mapping; earlier++)
		if (earlier->path && mapping_is_same_file(earlier, mapping))
			return true;
	return false;
}

void doctor_stacks_read(struct doctor_stacks *stacks, uint32_t tgid, const struct options *options)
{
	struct proc_ref ref = {tgid, processes_live_thread(tgid)};
	struct symbol_files symbols = options_symbols(options);
	struct privilege_state privilege;
	mapping_vec maps = {0};

	*stacks = (struct doctor_stacks){.taken = options_have_stacks(options)};
	stacks->may_restore =
		!privilege_read(&privilege) && privilege_has(&privilege, CAP_CHECKPOINT_RESTORE);
	stacks->other_mounts = namespace_is_ours(ref, "mnt") == 0;
	stacks->err = maps_read_executable(ref, &maps);
	vec_for_each (mapping, &maps) {
		if (!mapping->path)
			/* [vsyscall] is of no process: it lies in the kernel's half. */
			stacks->generated += !mapping->is_vdso && !(mapping->start >> 63);
		else if (!was_met(&maps, mapping))
			read_file(stacks, tgid, mapping, &symbols);
	}
	maps_free(&maps);
}

/* "3 files (a.so, b.so, …)". */
static const char *say(const struct doctor_code *code, char text[DOCTOR_CODE_NAMES + 64])
{
	snprintf(text, DOCTOR_CODE_NAMES + 64, "%zu file%s (%s%s)", code->count,
		 code->count == 1 ? "" : "s", code->names,
		 code->count > NAMES_SHOWN ? ", ..." : "");
	return text;
}

static void judge_deleted(const struct doctor_stacks *stacks, struct findings *checks)
{
	char text[DOCTOR_CODE_NAMES + 64];

	if (!stacks->deleted.count)
		return;
	findings_add(
		checks, FINDING_WARN, "stacks",
		"%s cannot be read: deleted or replaced since it was started; stacks end there, "
		"or go on by frame pointers",
		say(&stacks->deleted, text));
	if (stacks->may_restore)
		findings_advise(checks, "restart the process");
	else
		findings_advise(checks, "run with sudo, or grant CAP_CHECKPOINT_RESTORE (or "
					"CAP_SYS_ADMIN): the kernel then gives the file out "
					"(/proc/PID/map_files); or restart the process");
}

static void judge_hidden(const struct doctor_stacks *stacks, struct findings *checks)
{
	char text[DOCTOR_CODE_NAMES + 64];

	if (!stacks->hidden.count)
		return;
	findings_add(checks, FINDING_WARN, "stacks",
		     "%s cannot be read%s; stacks end there, or go on by frame pointers",
		     say(&stacks->hidden, text),
		     stacks->other_mounts ? ": the process has other mounts (a container), where "
					    "their paths lead elsewhere"
					  : ": their paths lead elsewhere, or are not accessible");
	findings_advise(checks,
			"run with sudo on the host, or grant %sCAP_SYS_PTRACE and "
			"CAP_DAC_READ_SEARCH",
			stacks->may_restore ? "" : "CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN), ");
}

static void judge_tableless(const struct doctor_stacks *stacks, struct findings *checks)
{
	char text[DOCTOR_CODE_NAMES + 64];

	if (stacks->tableless.count) {
		findings_add(checks, FINDING_WARN, "stacks",
			     "%s without an unwind table (.eh_frame): stacks go on by frame "
			     "pointers there, or end",
			     say(&stacks->tableless, text));
		findings_advise(checks, "build with -fasynchronous-unwind-tables, and keep "
					"--eh-frame-hdr of the linker");
	}
	if (stacks->no_elf.count)
		findings_add(checks, FINDING_NOTE, "stacks",
			     "%s of no ELF format for this machine: stacks go on by frame pointers "
			     "there, or end",
			     say(&stacks->no_elf, text));
}

static void judge_whole(const struct doctor_stacks *stacks, struct findings *checks)
{
	size_t lost = stacks->deleted.count + stacks->hidden.count + stacks->no_elf.count +
		      stacks->tableless.count;

	findings_add(checks, FINDING_OK, "stacks",
		     "can be followed through %zu of %zu files of code%s", stacks->all - lost,
		     stacks->all,
		     stacks->generated ? "; through generated code by frame pointers" : "");
}

static void judge_nameless(const struct doctor_stacks *stacks, struct findings *checks)
{
	char text[DOCTOR_CODE_NAMES + 64];

	if (!stacks->nameless.count)
		return;
	findings_add(checks, FINDING_NOTE, "stacks",
		     "%s stripped: functions that are not exported have addresses, no names",
		     say(&stacks->nameless, text));
	findings_advise(checks, "--symbols names them, in a replay too");
}

void doctor_stacks_judge(const struct doctor_stacks *stacks, struct findings *checks)
{
	if (!stacks->taken) {
		findings_add(checks, FINDING_NOTE, "stacks",
			     "none of slow calls: --detail steps and probes record no calls");
		return;
	}
	if (stacks->err)
		return;
	judge_whole(stacks, checks);
	judge_deleted(stacks, checks);
	judge_hidden(stacks, checks);
	judge_tableless(stacks, checks);
	judge_nameless(stacks, checks);
}
