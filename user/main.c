/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Parse, wire, one event loop, exit code. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "capture.h"
#include "clock.h"
#include "list_steps.h"
#include "log.h"
#include "options.h"
#include "outputs.h"
#include "privilege.h"
#include "profile.h"
#include "session.h"

/* No wakeups from the kernel: each would cost a traced thread 10 us. Half of what a ring must hold.
 */
#define POLL_NS	  (10 * 1000000ull)
#define STATUS_NS (1000 * 1000000ull)
enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct loop {
	int epoll_fd;
	int timer_fd;
	int signal_fd;
};

static void loop_close(struct loop *loop)
{
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	if (loop->signal_fd >= 0)
		close(loop->signal_fd);
}

/*
 * What ends a window. SIGHUP not if it is ignored from the start, as nohup does; but SIGINT is
 * ignored in background jobs of a script, which then sends it itself.
 */
static void collect_signals(sigset_t *signals)
{
	struct sigaction action;

	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	if (!sigaction(SIGHUP, NULL, &action) && action.sa_handler != SIG_IGN)
		sigaddset(signals, SIGHUP);
}

static int loop_open(struct loop *loop)
{
	struct itimerspec period = {.it_interval.tv_nsec = POLL_NS, .it_value.tv_nsec = POLL_NS};
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t signals;
	int err = 0;

	collect_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	loop->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	event.data.fd = loop->timer_fd;
	if (loop->epoll_fd < 0 || loop->timer_fd < 0 || loop->signal_fd < 0 ||
	    timerfd_settime(loop->timer_fd, 0, &period, NULL) ||
	    epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->timer_fd, &event))
		err = -errno;
	event.data.fd = loop->signal_fd;
	if (!err && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->signal_fd, &event))
		err = -errno;
	if (err)
		log_err("event loop: %s", strerror(-err));
	return err;
}

/* After the first signal the next one does what it does by default: it ends us at once. */
static void restore_signals(void)
{
	sigset_t signals;

	sigfillset(&signals);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

/* Waits for the next turn: false once a signal asks us to end. */
static bool loop_wait(struct loop *loop)
{
	struct epoll_event events[2];
	struct signalfd_siginfo signal;
	uint64_t expirations;
	bool go_on = true;
	int count = epoll_wait(loop->epoll_fd, events, 2, -1);

	if (count < 0)
		return errno == EINTR;
	for (int i = 0; i < count; i++) {
		/* Read, so that it is not delivered once signals do what they do by default. */
		if (events[i].data.fd == loop->signal_fd)
			go_on = read(loop->signal_fd, &signal, sizeof(signal)) < 0;
		else if (read(loop->timer_fd, &expirations, sizeof(expirations)) < 0)
			go_on = go_on && errno == EINTR;
	}
	return go_on;
}

static void run(struct loop *loop, struct session *session, struct outputs *outputs,
		const struct options *options)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t status_ns = start_ns + STATUS_NS;

	while (loop_wait(loop)) {
		session__poll(session);
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

		if (session__is_over(session) ||
		    (options->duration_ns && now_ns - start_ns >= options->duration_ns))
			break;
		if (now_ns >= status_ns) {
			outputs__show_status(outputs, now_ns);
			status_ns += STATUS_NS;
		}
	}
	restore_signals();
}

static void make_tag(char tag[64], uint32_t tgid)
{
	snprintf(tag, 64, "pid%u_%llu", tgid,
		 (unsigned long long)(clock_ns(CLOCK_REALTIME) / 1000000));
}

/*
 * 0, or -errno; *began tells whether there was a window, so that the outputs hold something.
 * Signals come through the loop only from here on: before, they end us, and nothing is attached.
 */
static int attach_and_run(struct session *session, struct outputs *outputs,
			  const struct options *options, const char *tag, bool *began)
{
	struct loop loop;
	int err = loop_open(&loop);

	if (!err)
		err = session__start(session, tag);
	*began = !err;
	if (!err) {
		run(&loop, session, outputs, options);
		session__finish(session);
		err = outputs__finish(outputs);
	}
	loop_close(&loop);
	return err;
}

static int trace(const struct options *options, const struct metadata *metadata)
{
	/* Filled in once the outputs are open; the session sends nothing before it starts. */
	struct record_output records = {0};
	struct session *session = NULL;
	struct outputs *outputs = NULL;
	bool began = false;
	char tag[64];
	int err = privilege_check();

	if (!err)
		err = session__open(&session, options, &records);
	if (err)
		return err;
	make_tag(tag, session__main_tgid(session));
	err = outputs__open(&outputs, options, metadata, tag);
	if (!err) {
		records = outputs__records(outputs);
		err = attach_and_run(session, outputs, options, tag, &began);
	}
	session__free(session);
	if (began)
		outputs__free(outputs);
	else
		outputs__discard(outputs);
	return err;
}

static void push_records(void *ctx, const void *data, size_t size)
{
	outputs__push(ctx, data, size);
}

static int replay(const struct options *options, const struct metadata *metadata)
{
	struct outputs *outputs = NULL;
	int err = 0, failed;
	FILE *in = fopen(options->replay, "re");

	if (!in) {
		err = -errno;
		log_err("%s: %s", options->replay, strerror(-err));
		return err;
	}
	err = outputs__open(&outputs, options, metadata, NULL);
	if (!err)
		err = capture_read(in, options->replay, push_records, outputs);
	fclose(in);
	/* Nothing in it was a capture: there is nothing to say but that. */
	if (err && (!outputs || !outputs__window(outputs)->record.start_ns)) {
		outputs__discard(outputs);
		return err;
	}
	failed = outputs__finish(outputs);
	outputs__free(outputs);
	return err ? err : failed;
}

static int list(const struct options *options)
{
	int err = privilege_check();

	return err ? err : list_steps(options, stdout);
}

/* Where 0, 1 or 2 is closed, the next file we open would take its place. */
static int fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct metadata metadata = {0};
	struct options options;
	int err = fill_standard_fds();

	if (err)
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN);
	/* A script's shell ignores it in background jobs, and then sends it itself. */
	signal(SIGINT, SIG_DFL);
	err = options_parse(&options, argc, argv);
	if (!err && options.mode != MODE_VALIDATE && options.mode != MODE_LIST_STEPS)
		err = metadata_resolve(&metadata, &options.metadata, environ);
	if (err) {
		options_clear(&options);
		return err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
	}
	switch (options.mode) {
	case MODE_TRACE:
		err = trace(&options, &metadata);
		break;
	case MODE_REPLAY:
		err = replay(&options, &metadata);
		break;
	case MODE_LIST_STEPS:
		err = list(&options);
		break;
	case MODE_VALIDATE:
		err = profile_validate_files(options.files, options.file_count,
					     options.require_events, stdout, stderr);
		break;
	case MODE_ENV_HASH:
		break;
	}
	metadata_clear(&metadata);
	options_clear(&options);
	return err ? EXIT_FAILED : EXIT_DONE;
}
