/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A file that the target has mapped: symbols, unwind table, build-id, debug link, USDT notes, code,
 * to step functions and candidates, and to the functions of a libc.
 *
 * fuzz: wrap maps_read
 * fuzz: wrap mapping_open
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "steps/image.h"
#include "fuzz.h"
#include "inject/place.h"
#include "steps/find.h"
#include "elf/symbols.h"

/* The input, under a number that can be named. */
#define INPUT_FD   100
#define INPUT_PATH "/proc/self/fd/100"

int __wrap_maps_read(uint32_t tgid, mapping_vec *maps);
int __wrap_mapping_open(uint32_t tgid, const struct mapping *mapping);

static const char *const texts[] = {"*",
				    "/step|decode/",
				    "step",
				    "libllama.so:llama_decode",
				    "string:text of a step",
				    "/usr/lib/libllama.so+0x401000",
				    "usdt:engine:begin,end"};
#define SPECS (sizeof(texts) / sizeof(texts[0]))

static struct step_spec specs[SPECS];

int __wrap_maps_read(uint32_t tgid, mapping_vec *maps)
{
	struct mapping mapping = {.start = 0x400000, .end = 0x500000, .inode = 1};

	(void)tgid;
	mapping.executable = true;
	mapping.path = strdup("/usr/lib/libllama.so");
	fuzz_check(mapping.path);
	fuzz_check(!vec_push(maps, mapping));
	return 0;
}

int __wrap_mapping_open(uint32_t tgid, const struct mapping *mapping)
{
	(void)tgid;
	(void)mapping;
	return fcntl(INPUT_FD, F_DUPFD_CLOEXEC, 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < SPECS; i++)
		fuzz_check(!step_spec_parse(&specs[i], texts[i]));
	return 0;
}

static void clear(function_vec *functions)
{
	vec_for_each (function, functions)
		step_function_free(*function);
	vec_free(functions);
}

static void find(const struct step_spec *spec, bool uretprobe)
{
	static const char *const symbol_files[] = {INPUT_PATH};
	struct target_options options = {.specs = spec, .spec_count = spec ? 1 : 0};
	struct target_seen *seen = target_seen__new();
	function_vec functions = {0};

	fuzz_check(seen);
	options.symbol_files = symbol_files;
	options.symbol_file_count = 1;
	options.uretprobe = uretprobe;
	target_find((uint32_t)getpid(), &options, seen, &functions);
	target_seen__free(seen);
	clear(&functions);
}

static void find_all(uint64_t entry)
{
	struct target_options options = {0};
	function_vec functions = {0};

	for (size_t i = 0; i < SPECS; i++) {
		if (specs[i].form == STEP_SPEC_ADDRESS)
			specs[i].address = entry;
		find(&specs[i], false);
	}
	find(&specs[SPECS - 2], true);
	find(NULL, false);
	target_find_candidates((uint32_t)getpid(), &options, NULL, 8, &functions);
	clear(&functions);
	options.specs = &specs[2];
	options.spec_count = 1;
	target_explain_no_match((uint32_t)getpid(), &options, TARGET_PYTHON_NONE);
}

/* The input as a libc, and as a file of symbols. */
static void find_exports(void)
{
	mapping_vec maps = {0};
	struct mapping mapping = {.readable = true};
	struct inject_libc libc;

	mapping.start = 0x7f0000000000;
	mapping.end = 0x7f0000100000;
	mapping.executable = true;
	mapping.path = strdup("/usr/lib/libc.so.6");
	fuzz_check(mapping.path && !vec_push(&maps, mapping));
	inject_libc_find(&libc, (uint32_t)getpid(), &maps);
	maps_free(&maps);
	debug_file_check(INPUT_PATH, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	uint64_t entry = 0;

	fuzz_check(dup2(fd, INPUT_FD) == INPUT_FD);
	close(fd);
	if (size >= sizeof(Elf64_Ehdr))
		memcpy(&entry, data + offsetof(Elf64_Ehdr, e_entry), sizeof(entry));
	find_all(entry);
	find_exports();
	return 0;
}
