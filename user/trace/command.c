/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/command.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/uprobes.h"
#include "proc/open.h"
#include "proc/process.h"
#include "proc/status.h"
#include "elf/elf_file.h"

/* As a shell, env(1) and timeout(1) have it. */
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND      127
/* How long the status of a command is waited for that is ending: 30 s. */
#define ENDING_TRIES 3000
#define ENDING_US    10000

struct child {
	pid_t pid;
	const char *name;
	int go;	    /* write end: one byte lets the child call execvp */
	int failed; /* read end: errno of execvp; end of file: execvp succeeded */
	bool has_ended;
	int status; /* as a shell returns it; 0 until the child has ended */
};

static void run_child(char **command, const char *injection, int go, int failed)
{
	sigset_t none;
	char byte;
	int err;

	/* The child does not inherit the signals that the tool blocks and ignores. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (read(go, &byte, 1) != 1)
		_exit(STATUS_NOT_FOUND);
	/* CUDA loads only one library, and the user may have set another. */
	if (injection)
		setenv(CHILD_INJECTION, injection, 0);
	execvp(command[0], command);
	err = errno;
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(STATUS_NOT_EXECUTABLE);
	_exit(STATUS_NOT_FOUND);
}

int child__start(struct child **result, char **command, const char *injection)
{
	struct child *child = calloc(1, sizeof(*child));
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, err = 0;

	*result = NULL;
	if (!child)
		return -ENOMEM;
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		err = -errno;
	child->pid = err ? -1 : fork();
	if (!err && child->pid < 0)
		err = -errno;
	if (!err && child->pid == 0) {
		close(go[1]);
		run_child(command, injection, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	child->go = go[1];
	child->failed = failed[0];
	child->name = command[0];
	if (err) {
		log_err("%s: %s", command[0], strerror(-err));
		close(child->go);
		close(child->failed);
		free(child);
		return err;
	}
	*result = child;
	return 0;
}

pid_t child__pid(const struct child *child)
{
	return child->pid;
}

int child__release(struct child *child)
{
	int err = 0;
	ssize_t got;

	if (write(child->go, "g", 1) != 1) {
		err = -errno;
	} else {
		do {
			got = read(child->failed, &err, sizeof(err));
		} while (got < 0 && errno == EINTR);
		err = got == sizeof(err) ? -err : 0;
		child->has_ended = err;
		if (err)
			child->status = err == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	}
	close(child->go);
	child->go = -1;
	if (err)
		log_err("%s: %s", child->name, strerror(-err));
	return err;
}

void child__report(struct child *child)
{
	const char *name;
	int status;

	if (child->has_ended || waitpid(child->pid, &status, WNOHANG) != child->pid)
		return;
	child->has_ended = true;
	child->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
	if (WIFSIGNALED(status))
		log_info("%s: killed by SIG%s", child->name, name ? name : "?");
	else if (child->status)
		log_info("%s: exited with status %d", child->name, child->status);
}

/* Whether no thread of the process runs its program any more. */
static bool is_ending(uint32_t tgid)
{
	pid_vec threads = {0};
	bool ends = !threads_list(tgid, &threads) && threads.count;

	vec_for_each (tid, &threads) {
		struct thread_stat stat;

		ends &= thread_stat_read(&stat, (struct proc_ref){tgid, *tid}) ||
			stat.flags & THREAD_EXITING;
	}
	vec_free(&threads);
	return ends;
}

int child__status(struct child *child)
{
	child__report(child);
	/* It is traced no more once it ends, but may take long to give back memory and GPU. */
	for (int i = 0; i < ENDING_TRIES && !child->has_ended && is_ending((uint32_t)child->pid);
	     i++) {
		usleep(ENDING_US);
		child__report(child);
	}
	if (!child->has_ended && child->go < 0)
		log_info("%s: still running as process %d", child->name, (int)child->pid);
	return child->status;
}

void child__free(struct child *child)
{
	if (!child)
		return;
	if (child->go >= 0) {
		close(child->go);
		waitpid(child->pid, NULL, 0);
	}
	close(child->failed);
	free(child);
}

enum launch_state {
	LAUNCH_EXEC,  /* will stop where execve returns */
	LAUNCH_ENTRY, /* will stop at the program's entry */
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

/* How long a stop may take that was pending when the tool died. */
#define GUARD_TRIES    40
#define GUARD_SLEEP_US 50000

static bool is_stopped(uint32_t tgid)
{
	struct thread_stat stat;

	return !thread_stat_read(&stat, (struct proc_ref){tgid, tgid}) && stat.state == 'T';
}

/*
 * The guard. A byte on the pipe means that it is not needed; end of file means that the tool is
 * dying. The tool's probes are then removed one by one, which may take 0.1 s each; the tool stays
 * our parent until they are gone. Closes all files of the tool.
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

/* Called when the last stop is over. */
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

/* Finds the file offset of the program's entry. -ENOENT: the program has no dynamic loader. */
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
	struct proc_ref process = {.tgid = launch->tgid};
	char path[PROC_PATH_MAX];
	int fd, err;

	uprobes__free(launch->entry);
	launch->entry = uprobes__new(loader__has_multi(launch->loader));
	if (!launch->entry)
		return -ENOMEM;
	proc_path(path, process, "exe");
	fd = proc_open(process, "exe", O_RDONLY);
	if (fd < 0)
		return fd;
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
