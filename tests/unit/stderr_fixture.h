/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a test says on stderr. Include after cmocka.h. */
#ifndef FBT_STDERR_FIXTURE_H
#define FBT_STDERR_FIXTURE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct stderr_fixture {
	int saved;
	int file;
	char text[16384];
};

static inline int stderr_setup(void **state)
{
	struct stderr_fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	fixture->saved = dup(STDERR_FILENO);
	fixture->file = memfd_create("stderr", MFD_CLOEXEC);
	*state = fixture;
	return fixture->file < 0 || dup2(fixture->file, STDERR_FILENO) < 0 ? -1 : 0;
}

static inline int stderr_teardown(void **state)
{
	struct stderr_fixture *fixture = *state;

	dup2(fixture->saved, STDERR_FILENO);
	close(fixture->saved);
	close(fixture->file);
	free(fixture);
	return 0;
}

static inline const char *stderr_text(struct stderr_fixture *fixture)
{
	ssize_t length = pread(fixture->file, fixture->text, sizeof(fixture->text) - 1, 0);

	fixture->text[length > 0 ? length : 0] = '\0';
	return fixture->text;
}

/* One line was said, and it holds part. */
static inline void assert_one_line(struct stderr_fixture *fixture, const char *part)
{
	const char *text = stderr_text(fixture), *newline = strchr(text, '\n');

	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
	assert_non_null(newline);
	assert_string_equal(newline, "\n");
}

static inline void assert_silent(struct stderr_fixture *fixture)
{
	assert_string_equal(stderr_text(fixture), "");
}

#endif
