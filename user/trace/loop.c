/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define EVENTS_MAX 4

/* How long a second signal of the same kind is waited for. */
#define SAME_NS	   100000000
#define SAME_TURNS 10

struct loop {
	int epoll_fd;
	int timer_fd;
	int signal_fd;
	uint64_t turn_ns;
	sigset_t signals;
	int ended_by; /* the signal that caused LOOP_END; 0: none yet */
};

static void collect_signals(sigset_t *signals)
{
	struct sigaction action;

	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGUSR1);
	if (!sigaction(SIGHUP, NULL, &action) && action.sa_handler != SIG_IGN)
		sigaddset(signals, SIGHUP);
}

static int fail(void)
{
	int err = -errno;

	log_err("event loop: %s", strerror(-err));
	return err;
}

int loop__watch(struct loop *loop, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? fail() : 0;
}

void loop__unwatch(struct loop *loop, int fd)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

int loop__new(struct loop **result)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int err = 0;

	*result = NULL;
	if (!loop)
		return -ENOMEM;
	collect_signals(&loop->signals);
	sigprocmask(SIG_BLOCK, &loop->signals, NULL);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	loop->signal_fd = signalfd(-1, &loop->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->epoll_fd < 0 || loop->timer_fd < 0 || loop->signal_fd < 0)
		err = fail();
	if (!err)
		err = loop__watch(loop, loop->timer_fd);
	if (!err)
		err = loop__watch(loop, loop->signal_fd);
	if (err) {
		loop__free(loop);
		return err;
	}
	*result = loop;
	return 0;
}

void loop__free(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	if (loop->signal_fd >= 0)
		close(loop->signal_fd);
	free(loop);
}

int loop__set_turn(struct loop *loop, uint64_t ns)
{
	struct timespec turn = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
	struct itimerspec period = {.it_interval = turn, .it_value = turn};

	/* Setting the timer again would restart its period. */
	if (loop->turn_ns == ns)
		return 0;
	loop->turn_ns = ns;
	return timerfd_settime(loop->timer_fd, 0, &period, NULL) ? fail() : 0;
}

static unsigned int news_of(int signo)
{
	switch (signo) {
	case SIGUSR1:
		return LOOP_MANUAL;
	case SIGWINCH:
		return LOOP_RESIZED;
	case SIGTSTP:
		return LOOP_SUSPENDED;
	case SIGCONT:
		return LOOP_CONTINUED;
	default:
		return LOOP_END;
	}
}

int loop__watch_terminal(struct loop *loop)
{
	static const int signals[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGQUIT};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&loop->signals, signals[i]);
	sigprocmask(SIG_BLOCK, &loop->signals, NULL);
	return signalfd(loop->signal_fd, &loop->signals, SFD_CLOEXEC | SFD_NONBLOCK) < 0 ? fail()
											 : 0;
}

/* So that they are not delivered once they have their default action again. */
unsigned int loop__take(struct loop *loop)
{
	struct signalfd_siginfo signal;
	unsigned int news = 0;

	while (read(loop->signal_fd, &signal, sizeof(signal)) == sizeof(signal)) {
		unsigned int asked = news_of((int)signal.ssi_signo);

		if (asked == LOOP_END && !loop->ended_by)
			loop->ended_by = (int)signal.ssi_signo;
		news |= asked;
	}
	return news;
}

unsigned int loop__wait(struct loop *loop)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t expirations;
	unsigned int news = 0;
	int count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, -1);

	if (count < 0 && errno != EINTR) {
		fail();
		return LOOP_END;
	}
	for (int i = 0; i < count; i++) {
		if (events[i].data.fd == loop->signal_fd) {
			news |= loop__take(loop);
			continue;
		}
		if (events[i].data.fd == loop->timer_fd &&
		    read(loop->timer_fd, &expirations, sizeof(expirations)) < 0 &&
		    errno != EAGAIN && errno != EINTR)
			news |= LOOP_END;
		else if (events[i].data.fd != loop->timer_fd)
			news |= LOOP_INPUT;
	}
	return news;
}

static void do_nothing(int signo)
{
}

/* Ignores the first of each signal that would end us. Not SIGUSR1, which main handles. */
static void pass_over_first(const struct loop *loop)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction once = {.sa_handler = do_nothing,
				       .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (sigismember(&loop->signals, ends[i]))
			sigaction(ends[i], &once, NULL);
	}
}

/*
 * Drops a second signal of the same kind: timeout(1) signals its child, and then its process group,
 * in which the child is.
 */
static void pass_over_same(int signo, void (*meanwhile)(void *ctx), void *ctx)
{
	const struct timespec turn = {.tv_nsec = SAME_NS / SAME_TURNS};
	sigset_t same;

	sigemptyset(&same);
	sigaddset(&same, signo);
	for (int i = 0; i < SAME_TURNS && sigtimedwait(&same, NULL, &turn) < 0; i++) {
		if (meanwhile)
			meanwhile(ctx);
	}
}

void loop__restore_signals(const struct loop *loop, void (*meanwhile)(void *ctx), void *ctx)
{
	if (loop->ended_by)
		pass_over_same(loop->ended_by, meanwhile, ctx);
	else
		pass_over_first(loop);
	sigprocmask(SIG_UNBLOCK, &loop->signals, NULL);
}
