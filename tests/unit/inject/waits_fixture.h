/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The system calls in which a thread can wait. Each function waits in one of them. A child calls
 * one function, and leaves nothing behind when it is killed. Include after cmocka.h.
 */
#ifndef FBT_WAITS_FIXTURE_H
#define FBT_WAITS_FIXTURE_H

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child_fixture.h"

#define CANNOT	77 /* exit status of a child: this kernel lacks the call */
#define LONG_S	1000
#define LONG_MS 1000000
#define MUCH	(1 << 20)

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static const struct timespec long_time = {LONG_S, 0};
static uint32_t word;
static char bytes[MUCH];

static inline int must(int result)
{
	if (result < 0)
		_exit(CANNOT);
	return result;
}

static inline struct timespec in_long(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_sec += LONG_S;
	return time;
}

/* A pipe that nobody writes to. Returns the end to read from. */
static inline int new_pipe(void)
{
	int ends[2];

	must(pipe(ends));
	return ends[0];
}

static inline int new_socket(int type)
{
	int ends[2];

	must(socketpair(AF_UNIX, type, 0, ends));
	return ends[0];
}

static inline int new_listener(void)
{
	int fd = must(socket(AF_INET, SOCK_STREAM, 0));

	must(listen(fd, 1));
	return fd;
}

static inline int new_tcp(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listener = must(socket(AF_INET, SOCK_STREAM, 0));

	must(bind(listener, (struct sockaddr *)&address, size));
	must(listen(listener, 1));
	must(getsockname(listener, (struct sockaddr *)&address, &size));
	must(connect(must(socket(AF_INET, SOCK_STREAM, 0)), (struct sockaddr *)&address, size));
	return must(accept(listener, NULL, NULL));
}

static inline int new_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = must(epoll_create1(0));

	must(epoll_ctl(fd, EPOLL_CTL_ADD, new_pipe(), &event));
	return fd;
}

static inline int with_timeout(int fd)
{
	struct timeval time = {LONG_S, 0};

	must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	return fd;
}

static inline void block(int number, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, number);
	sigprocmask(SIG_BLOCK, set, NULL);
}

/* A child that does nothing and ends with this process. */
static inline pid_t new_child(void)
{
	pid_t pid = must(child_fork());

	while (!pid)
		pause();
	return pid;
}

static inline void poll_for(int ms)
{
	struct pollfd poll = {new_pipe(), POLLIN, 0};

	syscall(SYS_poll, &poll, 1, ms);
}

static inline void poll_timed(void)
{
	poll_for(LONG_MS);
}

static inline void poll_free(void)
{
	poll_for(-1);
}

static inline void ppoll_timed(void)
{
	struct pollfd poll = {new_pipe(), POLLIN, 0};
	struct timespec time = long_time;

	syscall(SYS_ppoll, &poll, 1, &time, NULL, 8);
}

static inline void ppoll_free(void)
{
	struct pollfd poll = {new_pipe(), POLLIN, 0};

	syscall(SYS_ppoll, &poll, 1, NULL, NULL, 8);
}

static inline void select_timed(void)
{
	struct timeval time = {LONG_S, 0};

	syscall(SYS_select, 0, NULL, NULL, NULL, &time);
}

static inline void select_free(void)
{
	syscall(SYS_select, 0, NULL, NULL, NULL, NULL);
}

static inline void pselect_timed(void)
{
	struct timespec time = long_time;

	syscall(SYS_pselect6, 0, NULL, NULL, NULL, &time, NULL);
}

static inline void pselect_free(void)
{
	syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, NULL);
}

static inline void epoll_timed(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_wait, new_epoll(), &event, 1, LONG_MS);
}

static inline void epoll_free(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_wait, new_epoll(), &event, 1, -1);
}

static inline void epoll_pwait_free(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_pwait, new_epoll(), &event, 1, -1, NULL, 8);
}

static inline void epoll_pwait2_timed(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_pwait2, new_epoll(), &event, 1, &long_time, NULL, 8);
}

static inline void epoll_pwait2_free(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_pwait2, new_epoll(), &event, 1, NULL, NULL, 8);
}

static inline void sleep_plain(void)
{
	syscall(SYS_nanosleep, &long_time, NULL);
}

static inline void sleep_relative(void)
{
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &long_time, NULL);
}

static inline void sleep_absolute(void)
{
	struct timespec until = in_long(CLOCK_MONOTONIC);

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static inline void futex_wait(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static inline void futex_wait_timed(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &long_time, NULL, 0);
}

static inline void futex_bitset(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, -1);
}

static inline void futex_bitset_timed(void)
{
	struct timespec until = in_long(CLOCK_REALTIME);

	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &until, NULL,
		-1);
}

static inline void futex_lock(void)
{
	word = 2;
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void futex_lock_timed(void)
{
	struct timespec until = in_long(CLOCK_REALTIME);

	word = 2;
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 2, &until, NULL,
		-1);
}

static inline void futex_spin_lock(void)
{
	word = 9;
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 9, &long_time, NULL, 0);
}

static inline void futex_pi(void)
{
	word = (uint32_t)new_child();
	syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static inline void futex_requeue_pi(void)
{
	static uint32_t other;

	syscall(SYS_futex, &word, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &other, 0);
}

static inline void futex_several(void)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} wait = {0, (uint64_t)&word, 2, 0};

	syscall(SYS_futex_waitv, &wait, 1, 0, NULL, 0);
}

static inline void read_pipe(void)
{
	syscall(SYS_read, new_pipe(), bytes, 9);
}

static inline void readv_pipe(void)
{
	struct iovec part = {bytes, 9};

	syscall(SYS_readv, new_pipe(), &part, 1);
}

static inline void read_socket(void)
{
	syscall(SYS_read, new_socket(SOCK_STREAM), bytes, 9);
}

static inline void read_socket_timed(void)
{
	syscall(SYS_read, with_timeout(new_socket(SOCK_STREAM)), bytes, 9);
}

static inline void read_tcp(void)
{
	syscall(SYS_read, new_tcp(), bytes, 9);
}

static inline void read_eventfd(void)
{
	syscall(SYS_read, must(eventfd(0, 0)), bytes, 8);
}

static inline void read_timerfd(void)
{
	struct itimerspec time = {{0, 0}, long_time};
	int fd = must(timerfd_create(CLOCK_MONOTONIC, 0));

	must(timerfd_settime(fd, 0, &time, NULL));
	syscall(SYS_read, fd, bytes, 8);
}

static inline void read_signalfd(void)
{
	sigset_t set;

	block(SIGUSR1, &set);
	syscall(SYS_read, must(signalfd(-1, &set, 0)), bytes, 512);
}

static inline void read_inotify(void)
{
	syscall(SYS_read, must(inotify_init()), bytes, 4096);
}

static inline int new_terminal(void)
{
	int keys, screen;

	must(openpty(&keys, &screen, NULL, NULL, NULL));
	return screen;
}

static inline void read_terminal(void)
{
	syscall(SYS_read, new_terminal(), bytes, 9);
}

static inline void readv_terminal(void)
{
	struct iovec part = {bytes, 9};

	syscall(SYS_readv, new_terminal(), &part, 1);
}

static inline void accept_free(void)
{
	syscall(SYS_accept, new_listener(), NULL, NULL);
}

static inline void accept4_free(void)
{
	syscall(SYS_accept4, new_listener(), NULL, NULL, 0);
}

static inline void accept_timed(void)
{
	syscall(SYS_accept4, with_timeout(new_listener()), NULL, NULL, 0);
}

static inline void receive(void)
{
	syscall(SYS_recvfrom, new_tcp(), bytes, 9, 0, NULL, NULL);
}

static inline void receive_datagram(void)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	struct sockaddr_in address = {.sin_family = AF_INET};

	must(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	syscall(SYS_recvfrom, fd, bytes, 9, 0, NULL, NULL);
}

static inline void receive_timed(void)
{
	syscall(SYS_recvfrom, with_timeout(new_tcp()), bytes, 9, 0, NULL, NULL);
}

static inline void receive_all(void)
{
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	must((int)write(ends[1], "abcd", 4));
	syscall(SYS_recvfrom, ends[0], bytes, 9, MSG_WAITALL, NULL, NULL);
}

static inline void receive_at_least(void)
{
	int ends[2], least = 9;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	must(setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	must((int)write(ends[1], "abcd", 4));
	syscall(SYS_recvfrom, ends[0], bytes, 20, 0, NULL, NULL);
}

static inline void receive_message_with(int flags)
{
	struct iovec part = {bytes, 9};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	syscall(SYS_recvmsg, new_socket(SOCK_STREAM), &message, flags);
}

static inline void receive_message(void)
{
	receive_message_with(0);
}

static inline void receive_message_all(void)
{
	receive_message_with(MSG_WAITALL);
}

static inline void receive_messages(void)
{
	struct iovec part = {bytes, 9};
	struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};

	syscall(SYS_recvmmsg, new_socket(SOCK_DGRAM), &message, 1, 0, NULL);
}

static inline void wait_for_child(void)
{
	new_child();
	syscall(SYS_wait4, -1, NULL, 0, NULL);
}

static inline void waitid_for_child(void)
{
	siginfo_t info;

	new_child();
	syscall(SYS_waitid, P_ALL, 0, &info, WEXITED, NULL);
}

static inline void wait_for_signal(void)
{
	sigset_t set;

	block(SIGUSR1, &set);
	syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 8);
}

static inline void suspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	syscall(SYS_rt_sigsuspend, &none, 8);
}

static inline void wait_for_any_signal(void)
{
	syscall(SYS_pause);
}

/*
 * Forks a child that waits for the end of this process and must then clean up. Returns 0 in the
 * child.
 */
static inline pid_t new_heir(void)
{
	struct pollfd ended = {must((int)syscall(SYS_pidfd_open, getpid(), 0)), POLLIN, 0};
	pid_t pid = must(fork());

	if (!pid)
		poll(&ended, 1, LONG_MS);
	return pid;
}

static inline void receive_sysv(void)
{
	int id = must(msgget(IPC_PRIVATE, 0600));

	if (!new_heir()) {
		msgctl(id, IPC_RMID, NULL);
		_exit(0);
	}
	syscall(SYS_msgrcv, id, bytes, 9, 0, 0);
}

static inline void wait_for_semaphore(void)
{
	int id = must(semget(IPC_PRIVATE, 1, 0600));
	struct sembuf take = {0, -1, 0};

	if (!new_heir()) {
		semctl(id, 0, IPC_RMID);
		_exit(0);
	}
	syscall(SYS_semop, id, &take, 1);
}

static inline void wait_for_io(void)
{
	unsigned long context = 0;

	must((int)syscall(SYS_io_setup, 8, &context));
	syscall(SYS_io_getevents, context, 1, 1, bytes, NULL);
}

static inline void lock_file(void)
{
	char path[] = "/tmp/inject_rank_XXXXXX";
	int fd = must(mkstemp(path)), other = must(open(path, O_RDWR));

	unlink(path);
	must(flock(other, LOCK_EX));
	syscall(SYS_flock, fd, LOCK_EX);
}

static inline void open_fifo(void)
{
	char folder[] = "/tmp/inject_rank_XXXXXX";

	if (!mkdtemp(folder))
		_exit(CANNOT);
	must(chdir(folder));
	must(mkfifo("fifo", 0600));
	/* The files are removed before the call, which opens the FIFO through a descriptor. */
	int fd = must(open("fifo", O_PATH));

	unlink("fifo");
	rmdir(folder);
	snprintf(bytes, sizeof(bytes), "/proc/self/fd/%d", fd);
	syscall(SYS_openat, AT_FDCWD, bytes, O_RDONLY);
}

static inline void read_fifo(void)
{
	char path[] = "/tmp/inject_rank_XXXXXX";
	int fd;

	must(mkstemp(path));
	unlink(path);
	must(mkfifo(path, 0600));
	fd = must(open(path, O_RDWR));
	unlink(path);
	syscall(SYS_read, fd, bytes, 9);
}

static inline void write_pipe(void)
{
	int ends[2];

	must(pipe(ends));
	syscall(SYS_write, ends[1], bytes, MUCH);
}

static inline void connect_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = must(socket(AF_UNIX, SOCK_STREAM, 0));
	socklen_t size = sizeof(address);

	/* An autobind address, which the kernel chooses. */
	must(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)));
	must(getsockname(listener, (struct sockaddr *)&address, &size));
	must(listen(listener, 0));
	must(connect(must(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&address, size));
	syscall(SYS_connect, must(socket(AF_UNIX, SOCK_STREAM, 0)), &address, size);
}

struct mq_attributes {
	long flags, count, size, now, reserved[4];
};

static inline int new_queue(void)
{
	struct mq_attributes attributes = {.count = 1, .size = 9};
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "inject_rank_%d", getpid());
	fd = must((int)syscall(SYS_mq_open, name, O_CREAT | O_RDWR, 0600, &attributes));
	syscall(SYS_mq_unlink, name);
	return fd;
}

static inline void receive_mq(void)
{
	syscall(SYS_mq_timedreceive, new_queue(), bytes, 9, NULL, NULL);
}

static inline void receive_mq_timed(void)
{
	struct timespec until = in_long(CLOCK_REALTIME);

	syscall(SYS_mq_timedreceive, new_queue(), bytes, 9, NULL, &until);
}

#endif
