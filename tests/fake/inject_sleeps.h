/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Calls that end by a time-out. */
#ifndef INJECT_SLEEPS_H
#define INJECT_SLEEPS_H

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include "inject_worker.h"

static void expect_zero(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, 0);
}

static void expect_timed_out(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, (uint64_t)-ETIMEDOUT);
}

static bool quiet_pipe(struct worker *w)
{
	return !pipe2(w->fds, O_CLOEXEC | O_NONBLOCK);
}

static void nanosleep_prepare(struct worker *w)
{
	w->timeout_ns = pick_timeout_ns(w);
	w->until = timespec_of(w->timeout_ns);
	set_call(w, SYS_nanosleep, (uintptr_t)&w->until, 0, w->in.args[2]);
}

static void tick_prepare(struct worker *w)
{
	nanosleep_prepare(w);
	w->until = timespec_of(1000000);
}

static void clock_relative_prepare(struct worker *w)
{
	nanosleep_prepare(w);
	set_call(w, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (uintptr_t)&w->until);
	w->in.args[3] = (uintptr_t)&w->buffer.time;
}

static void clock_absolute_prepare(struct worker *w)
{
	w->due_ns = now_ns() + pick_timeout_ns(w);
	w->until = timespec_of(w->due_ns);
	set_call(w, SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (uintptr_t)&w->until);
	w->in.args[3] = 0;
}

static struct pollfd *poll_set(struct worker *w)
{
	struct pollfd *set = (struct pollfd *)w->set;

	*set = (struct pollfd){.fd = w->fds[0], .events = POLLIN};
	return set;
}

static void poll_prepare(struct worker *w)
{
	w->timeout_ns = pick_timeout_ns(w);
	set_call(w, SYS_poll, (uintptr_t)poll_set(w), 1, w->timeout_ns / 1000000);
}

static void ppoll_prepare(struct worker *w)
{
	nanosleep_prepare(w);
	set_call(w, SYS_ppoll, (uintptr_t)poll_set(w), 1, (uintptr_t)&w->until);
	w->in.args[3] = 0;
}

static void select_prepare(struct worker *w)
{
	struct timeval *time = (struct timeval *)&w->until;

	w->timeout_ns = pick_timeout_ns(w);
	*time = (struct timeval){(time_t)(w->timeout_ns / 1000000000),
				 (suseconds_t)(w->timeout_ns % 1000000000 / 1000)};
	set_call(w, SYS_select, 0, 0, 0);
	w->in.args[3] = 0;
	w->in.args[4] = (uintptr_t)time;
}

static void pselect_prepare(struct worker *w)
{
	fd_set *set = (fd_set *)&w->buffer;

	nanosleep_prepare(w);
	FD_ZERO(set);
	FD_SET(w->fds[0], set);
	set_call(w, SYS_pselect6, (uint64_t)w->fds[0] + 1, (uintptr_t)set, 0);
	w->in.args[3] = 0;
	w->in.args[4] = (uintptr_t)&w->until;
	w->in.args[5] = 0;
}

static bool quiet_epoll(struct worker *w)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (!quiet_pipe(w))
		return false;
	w->fds[2] = epoll_create1(EPOLL_CLOEXEC);
	return w->fds[2] >= 0 && !epoll_ctl(w->fds[2], EPOLL_CTL_ADD, w->fds[0], &event);
}

/* Short ones only: the documented worst delay by a stop is this time once more. */
static void epoll_prepare(struct worker *w)
{
	uint64_t ms = 1 + random_below(w, 30);

	w->timeout_ns = ms * 1000000;
	set_call(w, SYS_epoll_wait, (uint64_t)w->fds[2], (uintptr_t)&w->buffer, 4);
	w->in.args[3] = ms;
}

static void epoll_pwait_prepare(struct worker *w)
{
	epoll_prepare(w);
	w->in.rax = SYS_epoll_pwait;
	w->in.args[4] = 0;
	w->in.args[5] = 8;
}

static void epoll_pwait2_prepare(struct worker *w)
{
	epoll_pwait_prepare(w);
	w->until = timespec_of(w->timeout_ns);
	w->in.rax = 441;
	w->in.args[3] = (uintptr_t)&w->until;
}

static bool timer_set_up(struct worker *w)
{
	w->fds[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return w->fds[0] >= 0;
}

static void timer_prepare(struct worker *w)
{
	struct itimerspec when = {.it_value = {0, 0}};

	w->due_ns = now_ns() + pick_timeout_ns(w);
	when.it_value = timespec_of(w->due_ns);
	if (timerfd_settime(w->fds[0], TFD_TIMER_ABSTIME, &when, NULL))
		complain(w, "timerfd_settime", (uint64_t)errno, 0);
	set_call(w, SYS_read, (uint64_t)w->fds[0], (uintptr_t)&w->buffer, 8);
}

static void timer_check(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, 8);
	expect(w, "expirations", w->buffer.words[0], 1);
}

static bool rcvtimeo_set_up(struct worker *w)
{
	struct timeval time = {0, 20000};

	return !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->fds) &&
	       !setsockopt(w->fds[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

static void rcvtimeo_prepare(struct worker *w)
{
	w->timeout_ns = 20000000;
	set_call(w, SYS_recvfrom, (uint64_t)w->fds[0], (uintptr_t)&w->buffer, 8);
	w->in.args[3] = 0;
	w->in.args[4] = 0;
	w->in.args[5] = 0;
}

static void rcvtimeo_check(struct worker *w, long result)
{
	expect(w, "result", (uint64_t)result, (uint64_t)-EAGAIN);
}

static void futex_relative_prepare(struct worker *w)
{
	nanosleep_prepare(w);
	set_call(w, SYS_futex, (uintptr_t)&w->word, FUTEX_WAIT_PRIVATE, 0);
	w->in.args[3] = (uintptr_t)&w->until;
}

static void futex_absolute_prepare(struct worker *w)
{
	clock_absolute_prepare(w);
	set_call(w, SYS_futex, (uintptr_t)&w->word, FUTEX_WAIT_BITSET_PRIVATE, 0);
	w->in.args[3] = (uintptr_t)&w->until;
	w->in.args[4] = 0;
	w->in.args[5] = 0xffffffff;
}

static bool semaphore_set_up(struct worker *w)
{
	return !sem_init(&w->semaphore, 0, 0);
}

static void semaphore_plain(struct worker *w)
{
	uint64_t excuse_ns = excused_ns(w), due_ns = now_ns() + pick_timeout_ns(w);
	struct timespec until = timespec_of(due_ns);
	int error = sem_clockwait(&w->semaphore, CLOCK_MONOTONIC, &until) ? errno : 0;

	judge_plain(w, error, due_ns, excuse_ns);
}

static bool condition_set_up(struct worker *w)
{
	pthread_condattr_t attributes;

	return !pthread_mutex_init(&w->mutex, NULL) && !pthread_condattr_init(&attributes) &&
	       !pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) &&
	       !pthread_cond_init(&w->condition, &attributes);
}

static void condition_plain(struct worker *w)
{
	uint64_t excuse_ns = excused_ns(w), due_ns = now_ns() + pick_timeout_ns(w);
	struct timespec until = timespec_of(due_ns);
	int error;

	pthread_mutex_lock(&w->mutex);
	error = pthread_cond_timedwait(&w->condition, &w->mutex, &until);
	pthread_mutex_unlock(&w->mutex);
	/* A spurious return is allowed, because setresuid() in another thread causes one. */
	if (!error && w->target->broadcasts)
		return;
	judge_plain(w, error, due_ns, excuse_ns);
}

/* Compiler-generated vector code, in a thread that sleeps from time to time. */
__attribute__((target("avx2"))) static double math_wide(void)
{
	typedef double four __attribute__((vector_size(32)));
	four sum = {0, 0, 0, 0}, x = {1, 2, 3, 4};

	for (int i = 1; i < 20000; i++) {
		x = x * 1.0000001 + 0.5;
		sum += x / (double)i;
	}
	return sum[0] + sum[1] + sum[2] + sum[3];
}

static double math_narrow(void)
{
	double sum = 0, x = 1;

	for (int i = 1; i < 20000; i++) {
		x = x * 1.0000001 + 0.5;
		sum += x / (double)i;
	}
	return sum;
}

static void math_check(struct worker *w, long result)
{
	double sum = __builtin_cpu_supports("avx2") ? math_wide() : math_narrow();
	uint64_t bits;

	memcpy(&bits, &sum, sizeof(bits));
	if (!w->received)
		w->received = bits;
	expect(w, "sum", bits, w->received);
	expect(w, "result", (uint64_t)result, 0);
}

#endif
