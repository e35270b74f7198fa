/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Each test has a folder of its own, and its stderr is caught. */
#ifndef FBT_OUTPUT_FIXTURE_H
#define FBT_OUTPUT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
	char dir[64];
	char path[128];
	char partial[160];
	int saved; /* stderr */
	int errors;
	char messages[4096];
};

static inline int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	strcpy(fixture->dir, "/tmp/fbt_output_XXXXXX");
	if (!mkdtemp(fixture->dir))
		return -1;
	snprintf(fixture->path, sizeof(fixture->path), "%s/trace.json", fixture->dir);
	snprintf(fixture->partial, sizeof(fixture->partial), "%s.partial", fixture->path);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	fixture->saved = dup(STDERR_FILENO);
	fixture->errors = memfd_create("stderr", MFD_CLOEXEC);
	dup2(fixture->errors, STDERR_FILENO);
	*state = fixture;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	dup2(fixture->saved, STDERR_FILENO);
	close(fixture->saved);
	close(fixture->errors);
	snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
	if (system(command))
		return -1;
	free(fixture);
	return 0;
}

static inline const char *messages(struct fixture *fixture)
{
	ssize_t length =
		pread(fixture->errors, fixture->messages, sizeof(fixture->messages) - 1, 0);

	fixture->messages[length > 0 ? length : 0] = '\0';
	return fixture->messages;
}

static inline void assert_one_message(struct fixture *fixture, const char *part)
{
	const char *text = messages(fixture);
	const char *newline = strchr(text, '\n');

	assert_non_null(strstr(text, part));
	assert_non_null(newline);
	assert_string_equal(newline, "\n");
}

static inline void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static inline void assert_text(const char *path, const char *expected)
{
	char text[256] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(text, expected);
}

static inline bool exists(const char *path)
{
	struct stat file;

	return !lstat(path, &file);
}

#endif
