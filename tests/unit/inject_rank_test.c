/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The table of calls against this kernel: a child waits in each, is stopped as an injection would
 * do it, and what the call is about to return has to be what its rank says.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject_file.h"
#include "inject_thread.h"

#if defined(__x86_64__)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define PATIENCE_S 60
#define CANNOT	   77 /* exit status of a child: this kernel does not have it */
#define LONG_S	   1000
#define LONG_MS	   1000000
#define MUCH	   (1 << 20)

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* What is in rax of a call that is interrupted (the kernel's linux/errno.h). */
#define ERESTARTSYS	      512
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

static const struct timespec long_time = {LONG_S, 0};
static uint32_t word;
static char bytes[MUCH];

static int must(int result)
{
	if (result < 0)
		_exit(CANNOT);
	return result;
}

static struct timespec in_long(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_sec += LONG_S;
	return time;
}

/* Nobody ever writes to it. */
static int new_pipe(void)
{
	int ends[2];

	must(pipe(ends));
	return ends[0];
}

static int new_socket(int type)
{
	int ends[2];

	must(socketpair(AF_UNIX, type, 0, ends));
	return ends[0];
}

static int new_listener(void)
{
	int fd = must(socket(AF_INET, SOCK_STREAM, 0));

	must(listen(fd, 1));
	return fd;
}

static int new_tcp(void)
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

static int new_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = must(epoll_create1(0));

	must(epoll_ctl(fd, EPOLL_CTL_ADD, new_pipe(), &event));
	return fd;
}

static int with_timeout(int fd)
{
	struct timeval time = {LONG_S, 0};

	must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	return fd;
}

static void block(int number, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, number);
	sigprocmask(SIG_BLOCK, set, NULL);
}

/* A child that ends with us, and does nothing. */
static pid_t new_child(void)
{
	pid_t pid = must(fork());

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* --- what children wait in ------------------------------------------------------------------ */

static void poll_for(int ms)
{
	struct pollfd poll = {new_pipe(), POLLIN, 0};

	syscall(SYS_poll, &poll, 1, ms);
}

static void poll_timed(void)
{
	poll_for(LONG_MS);
}

static void poll_free(void)
{
	poll_for(-1);
}

static void ppoll_timed(void)
{
	struct pollfd poll = {new_pipe(), POLLIN, 0};
	struct timespec time = long_time;

	syscall(SYS_ppoll, &poll, 1, &time, NULL, 8);
}

static void ppoll_free(void)
{
	struct pollfd poll = {new_pipe(), POLLIN, 0};

	syscall(SYS_ppoll, &poll, 1, NULL, NULL, 8);
}

static void select_timed(void)
{
	struct timeval time = {LONG_S, 0};

	syscall(SYS_select, 0, NULL, NULL, NULL, &time);
}

static void select_free(void)
{
	syscall(SYS_select, 0, NULL, NULL, NULL, NULL);
}

static void pselect_timed(void)
{
	struct timespec time = long_time;

	syscall(SYS_pselect6, 0, NULL, NULL, NULL, &time, NULL);
}

static void pselect_free(void)
{
	syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, NULL);
}

static void epoll_timed(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_wait, new_epoll(), &event, 1, LONG_MS);
}

static void epoll_free(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_wait, new_epoll(), &event, 1, -1);
}

static void epoll_pwait_free(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_pwait, new_epoll(), &event, 1, -1, NULL, 8);
}

static void epoll_pwait2_timed(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_pwait2, new_epoll(), &event, 1, &long_time, NULL, 8);
}

static void epoll_pwait2_free(void)
{
	struct epoll_event event;

	syscall(SYS_epoll_pwait2, new_epoll(), &event, 1, NULL, NULL, 8);
}

static void sleep_plain(void)
{
	syscall(SYS_nanosleep, &long_time, NULL);
}

static void sleep_relative(void)
{
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &long_time, NULL);
}

static void sleep_absolute(void)
{
	struct timespec until = in_long(CLOCK_MONOTONIC);

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void futex_wait(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void futex_wait_timed(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &long_time, NULL, 0);
}

static void futex_bitset(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, -1);
}

static void futex_bitset_timed(void)
{
	struct timespec until = in_long(CLOCK_REALTIME);

	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &until, NULL,
		-1);
}

static void futex_lock(void)
{
	word = 2;
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void futex_lock_timed(void)
{
	struct timespec until = in_long(CLOCK_REALTIME);

	word = 2;
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 2, &until, NULL,
		-1);
}

static void futex_spin_lock(void)
{
	word = 9;
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 9, &long_time, NULL, 0);
}

static void futex_pi(void)
{
	word = (uint32_t)new_child();
	syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static void futex_requeue_pi(void)
{
	static uint32_t other;

	syscall(SYS_futex, &word, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &other, 0);
}

static void futex_several(void)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} wait = {0, (uint64_t)&word, 2, 0};

	syscall(SYS_futex_waitv, &wait, 1, 0, NULL, 0);
}

static void read_pipe(void)
{
	syscall(SYS_read, new_pipe(), bytes, 9);
}

static void readv_pipe(void)
{
	struct iovec part = {bytes, 9};

	syscall(SYS_readv, new_pipe(), &part, 1);
}

static void read_socket(void)
{
	syscall(SYS_read, new_socket(SOCK_STREAM), bytes, 9);
}

static void read_socket_timed(void)
{
	syscall(SYS_read, with_timeout(new_socket(SOCK_STREAM)), bytes, 9);
}

static void read_tcp(void)
{
	syscall(SYS_read, new_tcp(), bytes, 9);
}

static void read_eventfd(void)
{
	syscall(SYS_read, must(eventfd(0, 0)), bytes, 8);
}

static void read_timerfd(void)
{
	struct itimerspec time = {{0, 0}, long_time};
	int fd = must(timerfd_create(CLOCK_MONOTONIC, 0));

	must(timerfd_settime(fd, 0, &time, NULL));
	syscall(SYS_read, fd, bytes, 8);
}

static void read_signalfd(void)
{
	sigset_t set;

	block(SIGUSR1, &set);
	syscall(SYS_read, must(signalfd(-1, &set, 0)), bytes, 512);
}

static void read_inotify(void)
{
	syscall(SYS_read, must(inotify_init()), bytes, 4096);
}

static int new_terminal(void)
{
	int keys, screen;

	must(openpty(&keys, &screen, NULL, NULL, NULL));
	return screen;
}

static void read_terminal(void)
{
	syscall(SYS_read, new_terminal(), bytes, 9);
}

static void readv_terminal(void)
{
	struct iovec part = {bytes, 9};

	syscall(SYS_readv, new_terminal(), &part, 1);
}

static void accept_free(void)
{
	syscall(SYS_accept, new_listener(), NULL, NULL);
}

static void accept4_free(void)
{
	syscall(SYS_accept4, new_listener(), NULL, NULL, 0);
}

static void accept_timed(void)
{
	syscall(SYS_accept4, with_timeout(new_listener()), NULL, NULL, 0);
}

static void receive(void)
{
	syscall(SYS_recvfrom, new_tcp(), bytes, 9, 0, NULL, NULL);
}

static void receive_datagram(void)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	struct sockaddr_in address = {.sin_family = AF_INET};

	must(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	syscall(SYS_recvfrom, fd, bytes, 9, 0, NULL, NULL);
}

static void receive_timed(void)
{
	syscall(SYS_recvfrom, with_timeout(new_tcp()), bytes, 9, 0, NULL, NULL);
}

static void receive_all(void)
{
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	must((int)write(ends[1], "abcd", 4));
	syscall(SYS_recvfrom, ends[0], bytes, 9, MSG_WAITALL, NULL, NULL);
}

static void receive_at_least(void)
{
	int ends[2], least = 9;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	must(setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	must((int)write(ends[1], "abcd", 4));
	syscall(SYS_recvfrom, ends[0], bytes, 20, 0, NULL, NULL);
}

static void receive_message_with(int flags)
{
	struct iovec part = {bytes, 9};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	syscall(SYS_recvmsg, new_socket(SOCK_STREAM), &message, flags);
}

static void receive_message(void)
{
	receive_message_with(0);
}

static void receive_message_all(void)
{
	receive_message_with(MSG_WAITALL);
}

static void receive_messages(void)
{
	struct iovec part = {bytes, 9};
	struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};

	syscall(SYS_recvmmsg, new_socket(SOCK_DGRAM), &message, 1, 0, NULL);
}

static void wait_for_child(void)
{
	new_child();
	syscall(SYS_wait4, -1, NULL, 0, NULL);
}

static void waitid_for_child(void)
{
	siginfo_t info;

	new_child();
	syscall(SYS_waitid, P_ALL, 0, &info, WEXITED, NULL);
}

static void wait_for_signal(void)
{
	sigset_t set;

	block(SIGUSR1, &set);
	syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 8);
}

static void suspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	syscall(SYS_rt_sigsuspend, &none, 8);
}

static void wait_for_any_signal(void)
{
	syscall(SYS_pause);
}

/* A child that waits for our end, after which it is to tidy up; 0 in it. */
static pid_t new_heir(void)
{
	struct pollfd ended = {must((int)syscall(SYS_pidfd_open, getpid(), 0)), POLLIN, 0};
	pid_t pid = must(fork());

	if (!pid)
		poll(&ended, 1, LONG_MS);
	return pid;
}

static void receive_sysv(void)
{
	int id = must(msgget(IPC_PRIVATE, 0600));

	if (!new_heir()) {
		msgctl(id, IPC_RMID, NULL);
		_exit(0);
	}
	syscall(SYS_msgrcv, id, bytes, 9, 0, 0);
}

static void wait_for_semaphore(void)
{
	int id = must(semget(IPC_PRIVATE, 1, 0600));
	struct sembuf take = {0, -1, 0};

	if (!new_heir()) {
		semctl(id, 0, IPC_RMID);
		_exit(0);
	}
	syscall(SYS_semop, id, &take, 1);
}

static void wait_for_io(void)
{
	unsigned long context = 0;

	must((int)syscall(SYS_io_setup, 8, &context));
	syscall(SYS_io_getevents, context, 1, 1, bytes, NULL);
}

static void lock_file(void)
{
	char path[] = "/tmp/inject_rank_XXXXXX";
	int fd = must(mkstemp(path)), other = must(open(path, O_RDWR));

	unlink(path);
	must(flock(other, LOCK_EX));
	syscall(SYS_flock, fd, LOCK_EX);
}

static void open_fifo(void)
{
	char folder[] = "/tmp/inject_rank_XXXXXX";

	if (!mkdtemp(folder))
		_exit(CANNOT);
	must(chdir(folder));
	must(mkfifo("fifo", 0600));
	/* What is left goes before the call: it finds the FIFO by a descriptor. */
	int fd = must(open("fifo", O_PATH));

	unlink("fifo");
	rmdir(folder);
	snprintf(bytes, sizeof(bytes), "/proc/self/fd/%d", fd);
	syscall(SYS_openat, AT_FDCWD, bytes, O_RDONLY);
}

static void read_fifo(void)
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

static void write_pipe(void)
{
	int ends[2];

	must(pipe(ends));
	syscall(SYS_write, ends[1], bytes, MUCH);
}

static void connect_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = must(socket(AF_UNIX, SOCK_STREAM, 0));
	socklen_t size = sizeof(address);

	/* A name of the kernel's choice. */
	must(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)));
	must(getsockname(listener, (struct sockaddr *)&address, &size));
	must(listen(listener, 0));
	must(connect(must(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&address, size));
	syscall(SYS_connect, must(socket(AF_UNIX, SOCK_STREAM, 0)), &address, size);
}

struct mq_attributes {
	long flags, count, size, now, reserved[4];
};

static int new_queue(void)
{
	struct mq_attributes attributes = {.count = 1, .size = 9};
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "inject_rank_%d", getpid());
	fd = must((int)syscall(SYS_mq_open, name, O_CREAT | O_RDWR, 0600, &attributes));
	syscall(SYS_mq_unlink, name);
	return fd;
}

static void receive_mq(void)
{
	syscall(SYS_mq_timedreceive, new_queue(), bytes, 9, NULL, NULL);
}

static void receive_mq_timed(void)
{
	struct timespec until = in_long(CLOCK_REALTIME);

	syscall(SYS_mq_timedreceive, new_queue(), bytes, 9, NULL, &until);
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*wait)(void);
	long nr;
	enum inject_rank rank;
} cases[] = {
	{"poll", poll_timed, SYS_poll, INJECT_RANK_BLOCK},
	{"poll without time-out", poll_free, SYS_poll, INJECT_RANK_BLOCK},
	{"nanosleep", sleep_plain, SYS_nanosleep, INJECT_RANK_BLOCK},
	{"clock_nanosleep", sleep_relative, SYS_clock_nanosleep, INJECT_RANK_BLOCK},
	{"clock_nanosleep until", sleep_absolute, SYS_clock_nanosleep, INJECT_RANK_WRITTEN},
	{"ppoll", ppoll_timed, SYS_ppoll, INJECT_RANK_WRITTEN},
	{"ppoll without time-out", ppoll_free, SYS_ppoll, INJECT_RANK_RESTART},
	{"select", select_timed, SYS_select, INJECT_RANK_WRITTEN},
	{"select without time-out", select_free, SYS_select, INJECT_RANK_RESTART},
	{"pselect6", pselect_timed, SYS_pselect6, INJECT_RANK_WRITTEN},
	{"pselect6 without time-out", pselect_free, SYS_pselect6, INJECT_RANK_RESTART},
	{"epoll_wait", epoll_timed, SYS_epoll_wait, INJECT_RANK_EINTR_TIMED},
	{"epoll_wait without time-out", epoll_free, SYS_epoll_wait, INJECT_RANK_EINTR},
	{"epoll_pwait without time-out", epoll_pwait_free, SYS_epoll_pwait, INJECT_RANK_EINTR},
	{"epoll_pwait2", epoll_pwait2_timed, SYS_epoll_pwait2, INJECT_RANK_EINTR_TIMED},
	{"epoll_pwait2 without time-out", epoll_pwait2_free, SYS_epoll_pwait2, INJECT_RANK_EINTR},
	{"futex", futex_wait, SYS_futex, INJECT_RANK_RESTART},
	{"futex with a time-out", futex_wait_timed, SYS_futex, INJECT_RANK_BLOCK},
	{"futex of a bit set", futex_bitset, SYS_futex, INJECT_RANK_RESTART},
	{"futex of a bit set until", futex_bitset_timed, SYS_futex, INJECT_RANK_BLOCK},
	{"a lock", futex_lock, SYS_futex, INJECT_RANK_NONE},
	{"a lock with a time-out", futex_lock_timed, SYS_futex, INJECT_RANK_NONE},
	{"a spin lock", futex_spin_lock, SYS_futex, INJECT_RANK_NONE},
	{"a futex that hands on priority", futex_pi, SYS_futex, INJECT_RANK_NONE},
	{"a futex that is requeued", futex_requeue_pi, SYS_futex, INJECT_RANK_NONE},
	{"several futexes", futex_several, SYS_futex_waitv, INJECT_RANK_NONE},
	{"read of a pipe", read_pipe, SYS_read, INJECT_RANK_RESTART},
	{"readv of a pipe", readv_pipe, SYS_readv, INJECT_RANK_RESTART},
	{"read of a socket", read_socket, SYS_read, INJECT_RANK_RESTART},
	{"read of a socket with a time-out", read_socket_timed, SYS_read, INJECT_RANK_NONE},
	{"read of TCP", read_tcp, SYS_read, INJECT_RANK_RESTART},
	{"read of an eventfd", read_eventfd, SYS_read, INJECT_RANK_RESTART},
	{"read of a timerfd", read_timerfd, SYS_read, INJECT_RANK_RESTART},
	{"read of a signalfd", read_signalfd, SYS_read, INJECT_RANK_RESTART},
	{"read of inotify", read_inotify, SYS_read, INJECT_RANK_RESTART},
	{"read of a terminal", read_terminal, SYS_read, INJECT_RANK_NONE},
	{"readv of a terminal", readv_terminal, SYS_readv, INJECT_RANK_NONE},
	{"read of a FIFO with a name", read_fifo, SYS_read, INJECT_RANK_NONE},
	{"accept", accept_free, SYS_accept, INJECT_RANK_RESTART},
	{"accept4", accept4_free, SYS_accept4, INJECT_RANK_RESTART},
	{"accept4 with a time-out", accept_timed, SYS_accept4, INJECT_RANK_NONE},
	{"recvfrom", receive, SYS_recvfrom, INJECT_RANK_RESTART},
	{"recvfrom of datagrams", receive_datagram, SYS_recvfrom, INJECT_RANK_RESTART},
	{"recvfrom with a time-out", receive_timed, SYS_recvfrom, INJECT_RANK_NONE},
	{"recvfrom of all", receive_all, SYS_recvfrom, INJECT_RANK_NONE},
	{"recvfrom of a least count", receive_at_least, SYS_recvfrom, INJECT_RANK_NONE},
	{"recvmsg", receive_message, SYS_recvmsg, INJECT_RANK_RESTART},
	{"recvmsg of all", receive_message_all, SYS_recvmsg, INJECT_RANK_NONE},
	{"recvmmsg", receive_messages, SYS_recvmmsg, INJECT_RANK_NONE},
	{"wait4", wait_for_child, SYS_wait4, INJECT_RANK_RESTART},
	{"waitid", waitid_for_child, SYS_waitid, INJECT_RANK_RESTART},
	{"pause", wait_for_any_signal, SYS_pause, INJECT_RANK_RESTART},
	{"rt_sigsuspend", suspend, SYS_rt_sigsuspend, INJECT_RANK_NONE},
	{"rt_sigtimedwait", wait_for_signal, SYS_rt_sigtimedwait, INJECT_RANK_NONE},
	{"msgrcv", receive_sysv, SYS_msgrcv, INJECT_RANK_RESTART},
	{"semop", wait_for_semaphore, SYS_semop, INJECT_RANK_NONE},
	{"io_getevents", wait_for_io, SYS_io_getevents, INJECT_RANK_NONE},
	{"flock", lock_file, SYS_flock, INJECT_RANK_NONE},
	{"openat", open_fifo, SYS_openat, INJECT_RANK_NONE},
	{"write", write_pipe, SYS_write, INJECT_RANK_NONE},
	{"connect", connect_socket, SYS_connect, INJECT_RANK_NONE},
	{"mq_timedreceive", receive_mq, SYS_mq_timedreceive, INJECT_RANK_RESTART},
	{"mq_timedreceive until", receive_mq_timed, SYS_mq_timedreceive, INJECT_RANK_RESTART},
};

struct trial {
	size_t index;
	pid_t pid;
};

static int setup(void **state)
{
	static struct trial trial;

	trial.index = (size_t)*state;
	trial.pid = 0;
	*state = &trial;
	alarm(PATIENCE_S);
	return 0;
}

static int teardown(void **state)
{
	struct trial *trial = *state;

	alarm(0);
	if (trial->pid > 0) {
		kill(trial->pid, SIGKILL);
		while (waitpid(trial->pid, NULL, __WALL) == trial->pid)
			;
	}
	return 0;
}

static void look(pid_t pid, struct inject_thread *thread, char state[2])
{
	char path[32], line[1024];
	FILE *file;

	memset(thread, 0, sizeof(*thread));
	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	file = fopen(path, "re");
	if (file && (!fgets(line, sizeof(line), file) || inject_thread_parse(thread, line)))
		thread->nr = UINT64_MAX;
	if (file)
		fclose(file);
	state[0] = '?';
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file) && strrchr(line, ')'))
		state[0] = strrchr(line, ')')[2];
	if (file)
		fclose(file);
}

/* Until it waits in that call; false if it has ended. */
static bool await_call(pid_t pid, uint64_t nr, struct inject_thread *thread)
{
	char state[2] = "";

	do {
		usleep(500);
		look(pid, thread, state);
	} while ((thread->nr != nr || state[0] != 'S') && state[0] != 'Z');
	return state[0] != 'Z';
}

/* What the call is about to return. */
static int64_t interrupt(pid_t pid)
{
	struct user_regs_struct regs = {0};
	int status;

	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	return (int64_t)regs.rax;
}

static void assert_fits(enum inject_rank rank, int64_t rax)
{
	switch (rank) {
	case INJECT_RANK_BLOCK:
		assert_int_equal(rax, -ERESTART_RESTARTBLOCK);
		break;
	case INJECT_RANK_RESTART:
		assert_true(rax == -ERESTARTSYS || rax == -ERESTARTNOHAND);
		break;
	case INJECT_RANK_WRITTEN:
		assert_int_equal(rax, -ERESTARTNOHAND);
		break;
	case INJECT_RANK_EINTR:
	case INJECT_RANK_EINTR_TIMED:
		assert_int_equal(rax, -EINTR);
		break;
	default:
		break;
	}
}

static void a_call_returns_what_its_rank_says(void **state)
{
	struct trial *trial = *state;
	struct inject_thread thread;
	enum inject_rank rank = cases[trial->index].rank;
	uint64_t nr = (uint64_t)cases[trial->index].nr;

	trial->pid = fork();
	assert_true(trial->pid >= 0);
	if (!trial->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		cases[trial->index].wait();
		_exit(errno == ENOSYS ? CANNOT : 0);
	}
	if (!await_call(trial->pid, nr, &thread)) {
		int status;

		assert_int_equal(waitpid(trial->pid, &status, 0), trial->pid);
		trial->pid = 0;
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CANNOT);
		skip();
	}
	assert_int_equal(
		inject_file_rank((uint32_t)trial->pid, (uint32_t)trial->pid, nr, thread.args),
		rank);
	if (ptrace(PTRACE_SEIZE, trial->pid, 0, 0))
		skip();
	assert_fits(rank, interrupt(trial->pid));
	assert_int_equal(ptrace(PTRACE_CONT, trial->pid, 0, 0), 0);
	if (rank > INJECT_RANK_WRITTEN)
		return;
	/* It has not noticed, and can be had again. */
	nr = rank == INJECT_RANK_BLOCK ? SYS_restart_syscall : nr;
	assert_true(await_call(trial->pid, nr, &thread));
	assert_int_equal(
		inject_file_rank((uint32_t)trial->pid, (uint32_t)trial->pid, nr, thread.args),
		rank);
	assert_fits(rank, interrupt(trial->pid));
}

static bool is_in_cases(uint64_t nr)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		if ((uint64_t)cases[i].nr == nr && cases[i].rank != INJECT_RANK_NONE)
			return true;
	}
	return nr == SYS_restart_syscall;
}

static void no_other_call_is_taken(void **state)
{
	static const uint64_t none[6], all[6] = {-1ull, -1ull, -1ull, -1ull, -1ull, -1ull};

	(void)state;
	for (uint64_t nr = 0; nr < 600; nr++) {
		if (is_in_cases(nr))
			continue;
		assert_int_equal(inject_rank_of(nr, none), INJECT_RANK_NONE);
		assert_int_equal(inject_rank_of(nr, all), INJECT_RANK_NONE);
	}
	assert_int_equal(inject_rank_of(UINT64_MAX, none), INJECT_RANK_NONE);
}

/* A time-out of 32 bits stands in a register of 64, of which the kernel looks at the lower half. */
static void a_negative_timeout_is_none_in_either_width(void **state)
{
	static const uint64_t narrow[6] = {0, 0, 0, 0xffffffff}, wide[6] = {0, 0, 0, UINT64_MAX},
			      zero[6];

	(void)state;
	assert_int_equal(inject_rank_of(SYS_epoll_wait, narrow), INJECT_RANK_EINTR);
	assert_int_equal(inject_rank_of(SYS_epoll_wait, wide), INJECT_RANK_EINTR);
	assert_int_equal(inject_rank_of(SYS_epoll_wait, zero), INJECT_RANK_EINTR_TIMED);
}

/* Of the call that was interrupted only the arguments are left. */
static void a_lock_that_is_waited_for_again_is_not_taken(void **state)
{
	static const uint64_t until[6] = {4096, 0x189, 2, 8192, 0, UINT64_MAX},
			      spin[6] = {4096, 128, 9, 8192}, condition[6] = {4096, 0x189, 0, 8192},
			      poll2[6] = {4096, 128, 2, 0}, sleep[6] = {4096, 0, 0, 0};

	(void)state;
	assert_int_equal(inject_rank_of(SYS_restart_syscall, until), INJECT_RANK_NONE);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, spin), INJECT_RANK_NONE);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, condition), INJECT_RANK_BLOCK);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, poll2), INJECT_RANK_BLOCK);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, sleep), INJECT_RANK_BLOCK);
}

int main(void)
{
	struct CMUnitTest tests[COUNT(cases) + 3] = {
		cmocka_unit_test(no_other_call_is_taken),
		cmocka_unit_test(a_negative_timeout_is_none_in_either_width),
		cmocka_unit_test(a_lock_that_is_waited_for_again_is_not_taken),
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		tests[3 + i] = (struct CMUnitTest){cases[i].name, a_call_returns_what_its_rank_says,
						   setup, teardown, (void *)i};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void no_call_is_taken(void **state)
{
	static const uint64_t none[6];

	for (uint64_t nr = 0; nr < 600; nr++)
		assert_int_equal(inject_rank_of(nr, none), INJECT_RANK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_call_is_taken)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
