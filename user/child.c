/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"
#include "log.h"

struct child {
	pid_t pid;
	const char *name;
	int go;	    /* write end: one byte lets the child go */
	int failed; /* read end: errno of execvp, or end of file if that went well */
};

static void run_child(char **command, const char *injection, int go, int failed)
{
	sigset_t none;
	char byte;
	int err;

	/* The signals that the tool blocks and ignores are not the child's. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (read(go, &byte, 1) != 1)
		_exit(127);
	/* Whoever has set it wants another library there: CUDA loads one. */
	if (injection)
		setenv(CHILD_INJECTION, injection, 0);
	execvp(command[0], command);
	err = errno;
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
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
	}
	close(child->go);
	child->go = -1;
	if (err)
		log_err("%s: %s", child->name, strerror(-err));
	return err;
}

void child__report(const struct child *child)
{
	int status;

	if (waitpid(child->pid, &status, WNOHANG) != child->pid)
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		log_info("%s: exited with status %d", child->name, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		log_info("%s: killed by SIG%s", child->name,
			 sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
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
