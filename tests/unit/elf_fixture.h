/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* ELF files made by the compiler while the test runs, in a folder of their own. */
#ifndef FBT_ELF_FIXTURE_H
#define FBT_ELF_FIXTURE_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct elf_fixture {
	char folder[64];
	int log; /* what log_err wrote, while it is caught */
	int real_stderr;
};

/* printf into the shell, in the folder. True if it succeeded. */
__attribute__((format(printf, 2, 3), unused)) static bool
elf_fixture_run(struct elf_fixture *fixture, const char *format, ...)
{
	char *command, *whole;
	va_list args;
	int status;

	va_start(args, format);
	assert_true(vasprintf(&command, format, args) >= 0);
	va_end(args);
	assert_true(asprintf(&whole, "cd %s && { %s; } >/dev/null 2>&1", fixture->folder,
			     command) >= 0);
	status = system(whole);
	free(command);
	free(whole);
	return status == 0;
}

__attribute__((unused)) static void elf_fixture_write(struct elf_fixture *fixture, const char *name,
						      const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

__attribute__((unused)) static int elf_fixture_open(struct elf_fixture *fixture, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int elf_fixture_set_up(void **state)
{
	struct elf_fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	fixture->log = -1;
	strcpy(fixture->folder, "/tmp/fbt-elf-XXXXXX");
	if (!mkdtemp(fixture->folder))
		return -1;
	*state = fixture;
	return 0;
}

static int elf_fixture_tear_down(void **state)
{
	struct elf_fixture *fixture = *state;

	elf_fixture_run(fixture, "rm -rf -- *");
	rmdir(fixture->folder);
	free(fixture);
	return 0;
}

/* Skips the test where there is no compiler. */
__attribute__((unused)) static void elf_fixture_need(struct elf_fixture *fixture, const char *tool)
{
	if (elf_fixture_run(fixture, "command -v %s", tool))
		return;
	print_message("SKIP %s is not installed\n", tool);
	skip();
}

__attribute__((unused)) static void elf_fixture_catch_log(struct elf_fixture *fixture)
{
	fixture->log = memfd_create("log", 0);
	fixture->real_stderr = dup(2);
	assert_true(fixture->log >= 0 && fixture->real_stderr >= 0);
	dup2(fixture->log, 2);
}

/* Ends catching; checks that exactly one line was written and that it holds text. */
__attribute__((unused)) static void elf_fixture_check_log(struct elf_fixture *fixture,
							  const char *text)
{
	char log[2048] = "";
	char *end;

	dup2(fixture->real_stderr, 2);
	close(fixture->real_stderr);
	assert_true(pread(fixture->log, log, sizeof(log) - 1, 0) >= 0);
	close(fixture->log);
	end = strchr(log, '\n');
	if (!strstr(log, text) || !end || end[1])
		fail_msg("one line with \"%s\" was expected, not: %s", text, log);
}

#endif
