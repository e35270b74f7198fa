/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker.h"
#include "clock.h"
#include "log.h"

#define NS_PER_S       1000000000ull
#define MS	       1000000ull
#define CHILD_EXTRA_NS (10 * NS_PER_S)
/* A library larger than this is none of ours. */
#define LIBRARY_BYTES_MAX (64u << 20)
#define ENTRY		  "ferrum_cupti_attach"
#define CHILD_NAME	  "ferrum-inject"

struct inject {
	pid_t pid; /* 0: it is over, and has been waited for */
	int outcome_fd;
	uint64_t kill_ns;
	struct inject_outcome outcome;
};

/* 0, or -errno, logged; bytes are the caller's. */
static int read_library(const char *path, void **bytes, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat status;
	ssize_t got;

	*bytes = NULL;
	if (fd < 0 || fstat(fd, &status)) {
		err = -errno;
		goto out;
	}
	if (!S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > LIBRARY_BYTES_MAX) {
		err = -ENOEXEC;
		goto out;
	}
	*size = (size_t)status.st_size;
	*bytes = malloc(*size);
	if (!*bytes) {
		err = -ENOMEM;
		goto out;
	}
	got = read(fd, *bytes, *size);
	if (got != (ssize_t)*size)
		err = got < 0 ? -errno : -EIO;
out:
	if (fd >= 0)
		close(fd);
	if (err) {
		free(*bytes);
		*bytes = NULL;
		log_err("%s: %s", path, strerror(-err));
	}
	return err;
}

/* Nothing of the tool's: neither its terminal nor its signals, nor files that it may close. */
static int detach_child(int outcome_fd)
{
	int nothing, fd;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	inject_hurry();
	prctl(PR_SET_NAME, CHILD_NAME);
	nothing = open("/dev/null", O_RDWR);
	fd = fcntl(outcome_fd, F_DUPFD, 3);
	if (nothing < 0 || fd < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		dup2(nothing, i);
	if (dup2(fd, 3) < 0)
		return -1;
	close_range(4, ~0u, 0);
	return 3;
}

static _Noreturn void run_child(const struct inject_wish *wish, int outcome_fd)
{
	struct inject_outcome outcome;
	int fd = detach_child(outcome_fd);

	if (fd < 0)
		_exit(1);
	inject_run(wish, &outcome);
	_exit(write(fd, &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
}

static int start_child(struct inject *inject, const struct inject_wish *wish)
{
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	if (broker_is_there()) {
		err = broker_run(BROKER_INJECT, wish->tgid, ends[1], &inject->pid);
	} else {
		inject->pid = fork();
		err = inject->pid < 0 ? -errno : 0;
		if (!inject->pid)
			run_child(wish, ends[1]);
	}
	close(ends[1]);
	if (err) {
		close(ends[0]);
		return err;
	}
	inject->outcome_fd = ends[0];
	inject->kill_ns = clock_ns(CLOCK_MONOTONIC) + wish->timeout_ns + CHILD_EXTRA_NS;
	return 0;
}

static struct inject_wish make_wish(uint32_t tgid, uint64_t timeout_ns)
{
	return (struct inject_wish){
		.tgid = tgid,
		.library = {.entry = ENTRY},
		.need_cuda = true,
		.timeout_ns = timeout_ns,
	};
}

void inject_serve(const void *service, const struct broker_order *order, int output)
{
	const struct inject_service *what = service;
	struct inject_wish wish = make_wish(order->tgid, what->timeout_ns);

	if (!what->library)
		return;
	wish.library.bytes = what->library;
	wish.library.size = what->size;
	run_child(&wish, output);
}

int inject_service_open(struct inject_service *service, const char *shim, uint64_t timeout_ns)
{
	*service = (struct inject_service){.timeout_ns = timeout_ns};
	return read_library(shim, &service->library, &service->size);
}

void inject_service_clear(struct inject_service *service)
{
	free(service->library);
	*service = (struct inject_service){0};
}

int inject__start(struct inject **result, uint32_t tgid, const char *shim, uint64_t timeout_ns)
{
	struct inject *inject = calloc(1, sizeof(*inject));
	struct inject_wish wish = make_wish(tgid, timeout_ns);
	void *bytes = NULL;
	int err;

	*result = NULL;
	if (!inject)
		return -ENOMEM;
	err = read_library(shim, &bytes, &wish.library.size);
	if (err)
		goto out;
	wish.library.bytes = bytes;
	err = start_child(inject, &wish);
	if (err)
		log_err("--gpu=inject: %s", strerror(-err));
out:
	free(bytes);
	if (err)
		free(inject);
	else
		*result = inject;
	return err;
}

/* Waits for the child, which is dead or dies now; how it ended. */
static int bury_child(struct inject *inject)
{
	int status = 0;

	broker_kill(inject->pid);
	while (waitpid(inject->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	inject->pid = 0;
	close(inject->outcome_fd);
	return status;
}

static void fail(struct inject *inject, const char *text)
{
	memset(&inject->outcome, 0, sizeof(inject->outcome));
	inject->outcome.status = INJECT_FAILED;
	snprintf(inject->outcome.text, sizeof(inject->outcome.text), "%s", text);
}

/* What it has written, it has written whole: a pipe takes that much at once. */
static bool has_outcome(struct inject *inject)
{
	struct inject_outcome *outcome = &inject->outcome;

	if (read(inject->outcome_fd, outcome, sizeof(*outcome)) != sizeof(*outcome))
		return false;
	outcome->text[sizeof(outcome->text) - 1] = '\0';
	return true;
}

static bool has_ended(const struct inject *inject)
{
	siginfo_t info = {0};

	/* Left to be waited for: its number stays its own. */
	return waitid(P_PID, (id_t)inject->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid == inject->pid;
}

static bool look_at_child(struct inject *inject, uint64_t now_ns)
{
	bool ended = has_ended(inject);
	char text[64];
	int status;

	if (has_outcome(inject)) {
		bury_child(inject);
	} else if (ended) {
		status = bury_child(inject);
		snprintf(text, sizeof(text), "the injecting process died (%s %d)",
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		fail(inject, text);
	} else if (now_ns >= inject->kill_ns) {
		bury_child(inject);
		fail(inject, "it took too long, and was given up");
	} else {
		return false;
	}
	return true;
}

bool inject__poll(struct inject *inject, uint64_t now_ns, struct inject_outcome *outcome)
{
	if (inject->pid && !look_at_child(inject, now_ns))
		return false;
	*outcome = inject->outcome;
	return true;
}

void inject__free(struct inject *inject)
{
	struct inject_outcome outcome;
	uint64_t now_ns;

	if (!inject)
		return;
	while (!inject__poll(inject, now_ns = clock_ns(CLOCK_MONOTONIC), &outcome)) {
		struct pollfd end = {.fd = inject->outcome_fd, .events = POLLIN};

		poll(&end, 1, (int)((inject->kill_ns - now_ns) / MS) + 1);
	}
	free(inject);
}
