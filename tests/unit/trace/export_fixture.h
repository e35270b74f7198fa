/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The files of a window, in a directory of their own. stdout and stderr go to files. */
#ifndef FBT_EXPORT_FIXTURE_H
#define FBT_EXPORT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "stderr_fixture.h"
#include "stream_fixture.h"
#include "trace/exports.h"
#include "trace/outputs.h"

struct fixture {
	struct stderr_fixture *errors;
	char dir[32];
	int stdout_saved;
	int stdout_file;
	struct options options;
	struct metadata metadata;
	struct exports_shared shared;
	struct outputs *outputs;
	struct exports *exports;
	struct stream stream;
	char text[1 << 16];
};

static inline int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || stderr_setup((void **)&fixture->errors))
		return -1;
	strcpy(fixture->dir, "/tmp/fbt_export_XXXXXX");
	if (!mkdtemp(fixture->dir) || chdir(fixture->dir))
		return -1;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unsetenv("FERRUM_PROFILE_MODEL");
	log_set_level(LOG_INFO);
	fflush(stdout);
	fixture->stdout_saved = dup(STDOUT_FILENO);
	fixture->stdout_file = memfd_create("stdout", MFD_CLOEXEC);
	dup2(fixture->stdout_file, STDOUT_FILENO);
	fixture->options.report = REPORT_TEXT;
	fixture->options.judging.classify = classify_default_options();
	fixture->options.windows.dir = ".";
	fixture->metadata.env_hash = (char *)"sha256:0";
	fixture->metadata.model = (char *)"m";
	fixture->metadata.runtime_flags = (char *)"{}";
	fixture->shared.options = &fixture->options;
	*state = fixture;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[64];

	outputs__free(fixture->outputs);
	exports__free(fixture->exports);
	fflush(stdout);
	dup2(fixture->stdout_saved, STDOUT_FILENO);
	close(fixture->stdout_saved);
	close(fixture->stdout_file);
	stderr_teardown((void **)&fixture->errors);
	snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
	if (chdir("/") || system(command))
		return -1;
	free(fixture);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Counts the files of a folder that begin with prefix. name gets the last one. */
static inline int find_files(const char *dir, const char *prefix, char name[256])
{
	DIR *folder = opendir(dir);
	struct dirent *entry;
	int count = 0;

	while (folder && (entry = readdir(folder))) {
		if (*entry->d_name == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		strcpy(name, entry->d_name);
		count++;
	}
	if (folder)
		closedir(folder);
	return count;
}

static inline const char *text_of(struct fixture *fixture, const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		fail_msg("%s is not there", path);
	fixture->text[fread(fixture->text, 1, sizeof(fixture->text) - 1, file)] = '\0';
	fclose(file);
	return fixture->text;
}

static inline const char *stdout_text(struct fixture *fixture)
{
	ssize_t length;

	fflush(stdout);
	length = pread(fixture->stdout_file, fixture->text, sizeof(fixture->text) - 1, 0);
	fixture->text[length > 0 ? length : 0] = '\0';
	return fixture->text;
}

#endif
