/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/timed_write.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/end_signals.h"

#define END_NS	NS_PER_S
#define TURN_MS 100

bool timed_write_may_block(int fd)
{
	struct stat file;

	if (fstat(fd, &file))
		return false;
	return S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode) || isatty(fd);
}

bool timed_write_in_window(void)
{
	sigset_t blocked;

	return !sigprocmask(SIG_BLOCK, NULL, &blocked) && sigismember(&blocked, SIGINT) == 1;
}

/* 0 once fd is writable or has failed: the write tells which. */
static int await_room(int fd, uint64_t wait_ns)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), waited_ns;
	int turn_ms = 0, count;

	while ((count = poll(&room, 1, turn_ms)) <= 0) {
		if (count < 0 && errno != EINTR)
			return 0;
		waited_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
		if (waited_ns >= wait_ns || (waited_ns >= END_NS && end_signals_came()))
			return -ETIMEDOUT;
		turn_ms = TURN_MS;
	}
	return 0;
}

int timed_write(int fd, const void *data, size_t size, uint64_t wait_ns, size_t *written)
{
	int err;

	*written = 0;
	while (*written < size) {
		/* A writable pipe takes at least this much at once. */
		size_t piece = size - *written < PIPE_BUF ? size - *written : PIPE_BUF;
		ssize_t count;

		err = await_room(fd, wait_ns);
		if (err)
			return err;
		count = write(fd, (const char *)data + *written, piece);
		err = count < 0 ? -errno : -EIO;
		if (err == -EINTR || err == -EAGAIN)
			continue;
		if (count <= 0)
			return err;
		*written += (size_t)count;
	}
	return 0;
}

static ssize_t write_cookie(void *cookie, const char *data, size_t size)
{
	uint64_t wait_ns = timed_write_in_window() ? TIMED_WRITE_WINDOW_NS : TIMED_WRITE_NO_LIMIT;
	size_t written;
	int err = timed_write((int)(intptr_t)cookie, data, size, wait_ns, &written);

	if (err)
		errno = -err;
	return err ? 0 : (ssize_t)written;
}

static int close_cookie(void *cookie)
{
	return close((int)(intptr_t)cookie) ? EOF : 0;
}

FILE *timed_write_open(int fd)
{
	const cookie_io_functions_t functions = {.write = write_cookie, .close = close_cookie};

	return fopencookie((void *)(intptr_t)fd, "w", functions);
}
