/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "elf_file.h"
#include "launch.h"
#include "log.h"
#include "processes.h"
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
	pid_t guard;
	int guard_pipe;
};

/* How long a stop may take to arrive that was on its way when the tool died. */
#define GUARD_TRIES    40
#define GUARD_SLEEP_US 50000

static bool is_stopped(uint32_t tgid)
{
	struct thread_stat stat;

	return !thread_stat_read(&stat, tgid, tgid) && stat.state == 'T';
}

/*
 * A byte: all is well. End of file: the tool dies. While it does, its probes go one by one, which
 * takes seconds where each takes 0.1 s: it has no children any more once they are gone. Keeps
 * nothing of the tool's open.
 */
static void run_guard(uint32_t tgid, int pipe_fd, pid_t tool)
{
	int tries = 0;
	char byte;

	setsid();
	if (dup2(pipe_fd, 3) != 3)
		_exit(1);
	close_range(4, ~0u, 0);
	if (read(3, &byte, 1) == 1)
		_exit(0);
	while (tries < GUARD_TRIES) {
		tries += getppid() != tool;
		if (is_stopped(tgid))
			kill((pid_t)tgid, SIGCONT);
		usleep(GUARD_SLEEP_US);
	}
	_exit(0);
}

static int start_guard(struct launch *launch)
{
	pid_t tool = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	launch->guard = fork();
	if (launch->guard == 0) {
		close(ends[1]);
		run_guard(launch->tgid, ends[0], tool);
	}
	close(ends[0]);
	launch->guard_pipe = ends[1];
	return launch->guard < 0 ? -errno : 0;
}

/* The last stop is over. */
static void finish(struct launch *launch)
{
	uprobes__free(launch->entry);
	launch->entry = NULL;
	launch->state = LAUNCH_DONE;
	loader__release_command(launch->loader);
}

static void dismiss_guard(struct launch *launch)
{
	if (launch->guard > 0 && write(launch->guard_pipe, "", 1) == 1)
		waitpid(launch->guard, NULL, 0);
	if (launch->guard_pipe >= 0)
		close(launch->guard_pipe);
	launch->guard_pipe = -1;
	launch->guard = 0;
}

int launch__new(struct launch **result, struct loader *loader, uint32_t tgid)
{
	struct launch *launch = calloc(1, sizeof(*launch));
	int err;

	*result = NULL;
	if (!launch)
		return -ENOMEM;
	launch->loader = loader;
	launch->tgid = tgid;
	launch->state = LAUNCH_EXEC;
	launch->guard_pipe = -1;
	err = start_guard(launch);
	if (err) {
		log_err("COMMAND: %s", strerror(-err));
		dismiss_guard(launch);
		free(launch);
		return err;
	}
	loader__set_command(loader, tgid);
	*result = launch;
	return 0;
}

void launch__free(struct launch *launch)
{
	if (!launch)
		return;
	if (launch->state != LAUNCH_DONE) {
		finish(launch);
		kill((pid_t)launch->tgid, SIGCONT);
	}
	dismiss_guard(launch);
	free(launch);
}

bool launch__is_stopped(const struct launch *launch)
{
	return launch->state != LAUNCH_DONE && is_stopped(launch->tgid);
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
	if (launch->state == LAUNCH_EXEC && !stop_at_entry(launch))
		launch->state = LAUNCH_ENTRY;
	else
		finish(launch);
	if (kill((pid_t)launch->tgid, SIGCONT))
		log_debug("COMMAND: %s", strerror(errno));
	if (launch->state == LAUNCH_DONE)
		dismiss_guard(launch);
}

bool launch__is_done(const struct launch *launch)
{
	return launch->state == LAUNCH_DONE;
}
