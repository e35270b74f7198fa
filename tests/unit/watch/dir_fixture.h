/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#ifndef DIR_FIXTURE_H
#define DIR_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "stderr_fixture.h"

/* For cmocka_unit_test_setup_teardown(): each test has a folder of its own, and its stderr is kept.
 */
static char dir[64];

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/fbt_watch_XXXXXX");
	return mkdtemp(dir) && !stderr_setup(state) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	stderr_teardown(state);
	return system(command);
}

/* The name's path in that folder; the next call overwrites it. */
static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static bool is_there(const char *name)
{
	struct stat status;

	return !lstat(path_of(name), &status);
}

#endif
