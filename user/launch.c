/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf_file.h"
#include "launch.h"
#include "log.h"
#include "uprobes.h"

enum launch_state {
	LAUNCH_EXEC,  /* stops where execve returns */
	LAUNCH_ENTRY, /* stops at the program's entry */
	LAUNCH_DONE,
};

struct launch {
	struct loader *loader;
	uint32_t tgid;
	enum launch_state state;
	struct uprobes *entry;
};

struct launch *launch__new(struct loader *loader, uint32_t tgid)
{
	struct launch *launch = calloc(1, sizeof(*launch));

	if (!launch)
		return NULL;
	launch->loader = loader;
	launch->tgid = tgid;
	launch->state = LAUNCH_EXEC;
	return launch;
}

void launch__free(struct launch *launch)
{
	if (!launch)
		return;
	uprobes__free(launch->entry);
	/* Whatever stop it stands at or comes to now is the last. */
	if (launch->state != LAUNCH_DONE)
		kill((pid_t)launch->tgid, SIGCONT);
	free(launch);
}

void launch__exec(struct launch *launch)
{
	launch->state = LAUNCH_EXEC;
}

bool launch__is_pending(const struct launch *launch)
{
	return launch->state != LAUNCH_DONE;
}

bool launch__is_stopped(const struct launch *launch)
{
	char path[32], line[512], state = 0;
	const char *end;
	FILE *file;

	if (launch->state == LAUNCH_DONE)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/stat", launch->tgid);
	file = fopen(path, "re");
	if (!file)
		return false;
	/* The name in field 2 may hold anything but ends with the last parenthesis. */
	if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')) &&
	    sscanf(end + 1, " %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'T';
}

/* File offset of the entry of a program with a dynamic loader; -ENOENT if it has none. */
static int find_entry(int fd, uint64_t *offset)
{
	struct elf_file *file = NULL;
	Elf64_Ehdr header;
	int err = elf_file__open(&file, fd);

	if (!err && !elf_file__has_interpreter(file))
		err = -ENOENT;
	if (!err && pread(fd, &header, sizeof(header), 0) != sizeof(header))
		err = -EIO;
	if (!err)
		err = elf_file__offset(file, header.e_entry, true, offset);
	elf_file__free(file);
	return err;
}

static int stop_at_entry(struct launch *launch)
{
	struct uprobe_place place = {.cookie = FBT_PROBE_STOP};
	char path[32];
	int fd, err;

	uprobes__free(launch->entry);
	launch->entry = uprobes__new(loader__has_multi(launch->loader));
	if (!launch->entry)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%u/exe", launch->tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = find_entry(fd, &place.offset);
	if (!err)
		err = uprobes__attach(launch->entry, loader__step_program(launch->loader), fd, path,
				      &place, 1, 0, false);
	close(fd);
	return err;
}

void launch__continue(struct launch *launch)
{
	if (launch->state == LAUNCH_EXEC && !stop_at_entry(launch)) {
		launch->state = LAUNCH_ENTRY;
	} else {
		uprobes__free(launch->entry);
		launch->entry = NULL;
		launch->state = LAUNCH_DONE;
	}
	if (kill((pid_t)launch->tgid, SIGCONT))
		log_debug("COMMAND: %s", strerror(errno));
}
