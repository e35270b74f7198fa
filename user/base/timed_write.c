/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/timed_write.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/end_signals.h"

#define END_NS	NS_PER_S
#define TURN_MS 100
/* Without a wait: a terminal that has room takes less time. */
#define SHORT_TURN_NS (10 * NS_PER_MS)

#ifndef sigev_notify_thread_id /* glibc names it since 2.38 */
#define sigev_notify_thread_id _sigev_un._tid
#endif

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

/* Whether fd, which has taken nothing since then, is given up. */
static bool is_over(uint64_t since_ns, uint64_t wait_ns)
{
	uint64_t waited_ns = clock_ns(CLOCK_MONOTONIC) - since_ns;

	return waited_ns >= wait_ns || (waited_ns >= END_NS && end_signals_came());
}

/* 0 once fd is writable or has failed: the write tells which. */
static int await_room(int fd, uint64_t since_ns, uint64_t wait_ns)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	int turn_ms = 0, count;

	while ((count = poll(&room, 1, turn_ms)) <= 0) {
		if (count < 0 && errno != EINTR)
			return 0;
		if (is_over(since_ns, wait_ns))
			return -ETIMEDOUT;
		turn_ms = TURN_MS;
	}
	return 0;
}

static void do_nothing(int signo)
{
	(void)signo;
}

/*
 * A write that a signal of this thread interrupts after ns, and again each ns: a terminal with room
 * for one byte is writable to poll, but a write sleeps until there is room for all. SIGURG, because
 * it is ignored by default: nothing happens where one comes late. O_NONBLOCK would be set for the
 * shell too.
 */
static ssize_t write_within(int fd, const void *data, size_t size, uint64_t ns)
{
	const struct sigaction action = {.sa_handler = do_nothing};
	const struct itimerspec turns = {clock_timespec(ns), clock_timespec(ns)};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
	sigset_t urgent, before;
	timer_t timer;
	ssize_t count;
	int err;

	event.sigev_notify_thread_id = gettid();
	if (sigaction(SIGURG, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer))
		return write(fd, data, size);
	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &urgent, &before);
	timer_settime(timer, 0, &turns, NULL);
	count = write(fd, data, size);
	err = errno;
	timer_delete(timer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return count;
}

static uint64_t turn_ns(uint64_t wait_ns)
{
	if (wait_ns < SHORT_TURN_NS)
		return SHORT_TURN_NS;
	return wait_ns < TURN_MS * NS_PER_MS ? wait_ns : TURN_MS * NS_PER_MS;
}

int timed_write(int fd, const void *data, size_t size, uint64_t wait_ns, size_t *written)
{
	uint64_t since_ns = clock_ns(CLOCK_MONOTONIC);
	bool terminal = isatty(fd);
	int err;

	*written = 0;
	while (*written < size) {
		/* A writable pipe takes at least this much at once. */
		size_t piece = size - *written < PIPE_BUF ? size - *written : PIPE_BUF;
		const char *at = (const char *)data + *written;
		ssize_t count;

		err = await_room(fd, since_ns, wait_ns);
		if (err)
			return err;
		count = terminal ? write_within(fd, at, piece, turn_ns(wait_ns))
				 : write(fd, at, piece);
		err = count < 0 ? -errno : -EIO;
		if (count > 0) {
			*written += (size_t)count;
			since_ns = clock_ns(CLOCK_MONOTONIC);
		} else if (err != -EINTR && err != -EAGAIN) {
			return err;
		} else if (is_over(since_ns, wait_ns)) {
			return -ETIMEDOUT;
		} else if (err == -EAGAIN) {
			clock_sleep(turn_ns(wait_ns));
		}
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
