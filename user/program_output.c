/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "program_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clock.h"

#define NS_PER_MS 1000000

struct run {
	pid_t pid;
	int pid_fd;
	int out_fd;	     /* -1 once all of it was read */
	uint64_t timeout_ns; /* a time */
	char *text;
	size_t room; /* left in text, without the NUL */
};

/* In the child. Nothing of ours goes on: signals, descriptors, environment, folder. */
static void exec_program(const struct program *program, int out)
{
	sigset_t none;
	int null;

	/* Of its own, so that it can be killed with its children; and it dies with us. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null = open("/dev/null", O_RDWR);
	if (null < 0 || chdir("/") || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(out, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	close_range(STDERR_FILENO + 1, ~0u, 0);
	execve(program->path, (char *const *)program->arguments,
	       (char *const *)program->environment);
	_exit(127);
}

static int start(struct run *run, const struct program *program)
{
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	run->out_fd = ends[0];
	run->pid = fork();
	if (run->pid == 0)
		exec_program(program, ends[1]);
	if (run->pid < 0)
		err = -errno;
	close(ends[1]);
	if (err)
		return err;
	/* Also here: else we might kill its group before there is one. */
	setpgid(run->pid, run->pid);
	run->pid_fd = pidfd_open(run->pid, 0);
	if (run->pid_fd < 0 || fcntl(run->out_fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return 0;
}

/* What is there now. Without room for more the pipe is closed, which ends most programs. */
static void read_available(struct run *run)
{
	ssize_t got = 1;

	while (got > 0 && run->room) {
		got = read(run->out_fd, run->text, run->room);
		if (got > 0) {
			run->text += got;
			run->room -= (size_t)got;
		}
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(run->out_fd);
	run->out_fd = -1;
}

static int left_ms(const struct run *run)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	return now_ns < run->timeout_ns ? (int)((run->timeout_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

/* Until the program has ended; a child of it may still hold the pipe then. */
static int read_to_end(struct run *run)
{
	bool ended = false;
	int left, count;

	while (!ended) {
		struct pollfd fds[] = {{.fd = run->pid_fd, .events = POLLIN},
				       {.fd = run->out_fd, .events = POLLIN}};

		left = left_ms(run);
		if (!left)
			return -ETIMEDOUT;
		count = poll(fds, 2, left);
		if (count < 0 && errno != EINTR)
			return -errno;
		if (count <= 0)
			continue;
		ended = fds[0].revents;
		if (run->out_fd >= 0)
			read_available(run);
	}
	return 0;
}

int program_output(const struct program *program, char *text, size_t size, int *status)
{
	struct run run = {.pid = -1, .pid_fd = -1, .out_fd = -1, .room = size - 1};
	int wait_status = 0, err;

	run.text = text;
	run.timeout_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)program->timeout_ms * NS_PER_MS;
	err = start(&run, program);
	if (!err)
		err = read_to_end(&run);
	*run.text = '\0';
	/* Before it is reaped: until then its number, and its group's, is nobody else's. */
	if (run.pid > 0) {
		kill(-run.pid, SIGKILL);
		kill(run.pid, SIGKILL);
		while (waitpid(run.pid, &wait_status, 0) < 0 && errno == EINTR)
			;
	}
	if (run.pid_fd >= 0)
		close(run.pid_fd);
	if (run.out_fd >= 0)
		close(run.out_fd);
	*status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
	return err;
}
