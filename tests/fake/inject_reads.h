/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Calls that end when another thread feeds them numbers, each of which must come once and in order.
 */
#ifndef INJECT_READS_H
#define INJECT_READS_H

#include <sys/eventfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "inject_sleeps.h"

/* The next number through fds[1]. */
static bool feed_number(struct worker *w)
{
	uint64_t number = w->sent + 1;

	return write(w->fds[1], &number, sizeof(number)) == sizeof(number);
}

static void take_number(struct worker *w, uint64_t number)
{
	expect(w, "number", number, w->received + 1);
	w->received++;
}

static void number_check(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, 8);
	take_number(w, w->buffer.words[0]);
}

static bool pipe_set_up(struct worker *w)
{
	return !pipe2(w->fds, O_CLOEXEC);
}

static bool stream_set_up(struct worker *w)
{
	return !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->fds);
}

static bool datagram_set_up(struct worker *w)
{
	return !socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, w->fds);
}

static void read_prepare(struct worker *w)
{
	set_call(w, SYS_read, (uint64_t)w->fds[0], (uintptr_t)&w->buffer, 8);
}

static void recvfrom_prepare(struct worker *w)
{
	rcvtimeo_prepare(w);
	w->timeout_ns = 0;
}

static void recvmsg_prepare(struct worker *w)
{
	struct msghdr *message = (struct msghdr *)&w->buffer.words[8];
	struct iovec *part = (struct iovec *)&w->buffer.words[4];

	*part = (struct iovec){&w->buffer, 8};
	*message = (struct msghdr){.msg_iov = part, .msg_iovlen = 1};
	set_call(w, SYS_recvmsg, (uint64_t)w->fds[0], (uintptr_t)message, 0);
}

/* Written in two halves; a stop between them makes the kernel return only the first. */
static bool feed_half(struct worker *w)
{
	uint64_t number = w->sent / 2 + 1;

	return write(w->fds[1], &number, sizeof(number)) == sizeof(number);
}

static void waitall_prepare(struct worker *w)
{
	recvfrom_prepare(w);
	w->in.args[2] = 16;
	w->in.args[3] = MSG_WAITALL;
}

static void waitall_check(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, 16);
	expect(w, "number", w->buffer.words[0], w->received / 2 + 1);
	expect(w, "number", w->buffer.words[1], w->received / 2 + 1);
	w->received += 2;
}

static bool eventfd_set_up(struct worker *w)
{
	w->fds[0] = w->fds[1] = eventfd(0, EFD_CLOEXEC);
	return w->fds[0] >= 0;
}

static bool feed_one(struct worker *w)
{
	return !eventfd_write(w->fds[1], 1);
}

static void eventfd_check(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, 8);
	w->received += w->buffer.words[0];
}

/* For poll and similar calls: the descriptors that they report must be readable. */
static void ready_check(struct worker *w, long result)
{
	uint64_t number = 0;

	expect(w, "result", (uint64_t)result, 1);
	if (result == 1 && read(w->fds[0], &number, sizeof(number)) == sizeof(number))
		take_number(w, number);
	else
		complain(w, "nothing to read", (uint64_t)errno, 0);
}

static void poll_endless_prepare(struct worker *w)
{
	set_call(w, SYS_poll, (uintptr_t)poll_set(w), 1, (uint64_t)-1);
}

static void select_endless_prepare(struct worker *w)
{
	pselect_prepare(w);
	w->timeout_ns = 0;
	w->in.rax = SYS_select;
	w->in.args[4] = 0;
}

static void epoll_endless_prepare(struct worker *w)
{
	epoll_prepare(w);
	w->timeout_ns = 0;
	w->in.args[3] = (uint64_t)-1;
}

static void epoll_pwait_endless_prepare(struct worker *w)
{
	epoll_pwait_prepare(w);
	w->timeout_ns = 0;
	w->in.args[3] = (uint64_t)-1;
}

/* An abstract name, so that no file is left behind. */
static socklen_t name_socket(struct worker *w, struct sockaddr_un *address)
{
	int size;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	size = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "inject_target.%d.%s",
			getpid(), w->name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

static bool accept_set_up(struct worker *w)
{
	struct sockaddr_un address;
	socklen_t size = name_socket(w, &address);

	w->fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return w->fds[0] >= 0 && !bind(w->fds[0], (struct sockaddr *)&address, size) &&
	       !listen(w->fds[0], 16);
}

static bool feed_connection(struct worker *w)
{
	struct sockaddr_un address;
	socklen_t size = name_socket(w, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	uint64_t number = w->sent + 1;
	bool done = fd >= 0 && !connect(fd, (struct sockaddr *)&address, size) &&
		    write(fd, &number, sizeof(number)) == sizeof(number);

	if (fd >= 0)
		close(fd);
	return done;
}

static void accept_prepare(struct worker *w)
{
	set_call(w, SYS_accept4, (uint64_t)w->fds[0], 0, 0);
	w->in.args[3] = SOCK_CLOEXEC;
}

static void accept_check(struct worker *w, long result)
{
	uint64_t number = 0;

	if (result < 0) {
		complain(w, "result", (uint64_t)result, 0);
		return;
	}
	while (read((int)result, &number, sizeof(number)) < 0 && errno == EAGAIN)
		sched_yield();
	take_number(w, number);
	close((int)result);
}

static bool feed_word(struct worker *w)
{
	atomic_fetch_add(&w->word, 1);
	syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return true;
}

static void futex_prepare(struct worker *w)
{
	set_call(w, SYS_futex, (uintptr_t)&w->word, FUTEX_WAIT_PRIVATE, (uint32_t)w->received);
	w->in.args[3] = 0;
}

static void futex_check(struct worker *w, long result)
{
	if (result && result != -EAGAIN)
		complain(w, "result", (uint64_t)result, 0);
	w->received = atomic_load(&w->word);
}

static void child_prepare(struct worker *w)
{
	uint64_t ns = 1000000 * (1 + random_below(w, 30));

	if (!w->child) {
		w->child = fork();
		if (!w->child) {
			struct timespec time = timespec_of(ns);

			nanosleep(&time, NULL);
			_exit(42);
		}
	}
	set_call(w, SYS_wait4, (uint64_t)w->child, (uintptr_t)&w->buffer, 0);
	w->in.args[3] = 0;
}

static void child_check(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, (uint64_t)w->child);
	expect(w, "status", (uint32_t)w->buffer.words[0], 42u << 8);
	w->child = 0;
}

#endif
