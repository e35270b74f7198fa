/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * /proc files of a process, which hold names that the process has chosen. Every file of the process
 * is the input.
 * fuzz: wrap fopen
 * fuzz: wrap open
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include "base/log.h"
#include "fuzz.h"
#include "inject/cuda_use.h"
#include "inject/thread.h"
#include "model/event.h"
#include "proc/maps.h"
#include "proc/namespace.h"
#include "proc/process.h"
#include "proc/status.h"

/* No process has that number. */
#define TGID	    4200000000u
#define PROC_FOLDER "/proc/4200000000/"

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

static char *input;
static size_t input_size;

static bool is_its(const char *path)
{
	return !strncmp(path, PROC_FOLDER, strlen(PROC_FOLDER));
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return is_its(path) ? fmemopen(input, input_size, "r") : __real_fopen(path, mode);
}

int __wrap_open(const char *path, int flags, ...)
{
	int fd, mode;
	va_list args;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	if (!is_its(path))
		return __real_open(path, flags, mode);
	fd = fuzz_file(input, input_size);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_set_level(LOG_DEBUG);
	return 0;
}

/* Checks that all records about a process can be decoded. */
static void check_record(void *ctx, const void *data, size_t size)
{
	const struct fbt_header *event;

	(void)ctx;
	fuzz_check(decode_event(data, size, &event) == (long)size);
}

static const struct proc_ref process = {TGID, TGID};

static void read_maps(void)
{
	mapping_vec all = {0};
	char path[CUDA_PATH_SIZE];
	mapping_vec maps = {0};

	if (!maps_read(TGID, &maps))
		vec_for_each (mapping, &maps)
			fuzz_check(mapping->path && *mapping->path == '/');
	maps_free(&maps);
	maps_read_all(process, &all);
	vec_for_each (mapping, &all)
		fuzz_check(*mapping_name(mapping) != '/');
	maps_free(&all);
	cuda_use_is_there(TGID);
	cuda_use_is_inherited(TGID);
	cuda_use_lacks_shim(TGID);
	cuda_use_injection(TGID, path);
	fuzz_check(memchr(path, '\0', sizeof(path)));
}

static void read_lines(void)
{
	char *copy = fuzz_text(input, input_size), *rest = copy, *line;
	struct thread_status status = {0};
	struct inject_thread thread;
	int64_t offset_ns;

	while ((line = strsep(&rest, "\n"))) {
		thread_status_add(&status, line);
		time_namespace_parse(line, &offset_ns);
		if (!inject_thread_parse(&thread, line))
			inject_thread_rank(&thread);
	}
	free(copy);
}

static void read_rest(void)
{
	const struct record_output output = {.emit = check_record};
	struct process_strings strings;
	struct process_text text;
	struct thread_status status;
	struct thread_stat stat;

	thread_status_read(&status, process);
	limit_read(process, "Max open files");
	cgroup_is_frozen(process);
	cgroup_threads_left(process);
	thread_stat_read(&stat, process);
	if (!process_strings_read(&strings, TGID, "cmdline"))
		process_strings_clear(&strings);
	process_text_read(&text, TGID);
	record_send_target(&output, TGID, 0, 1, &text);
	record_send_thread(&output, TGID, TGID, text.comm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* fmemopen() accepts no empty buffer. */
	if (!size)
		return -1;
	input = fuzz_copy(data, size);
	input_size = size;
	read_maps();
	read_lines();
	read_rest();
	free(input);
	return 0;
}
