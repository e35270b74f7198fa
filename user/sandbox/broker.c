/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sandbox/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define NAME "ferrum-broker"
/* In addition to enum broker_work: kills the process whose PID is the order's tgid. */
#define WORK_KILL BROKER_WORKS
/* More than are ever needed at once. */
#define STARTED_MAX 8
/* Poll turns to wait for an answer: far more than any work takes, except work that may wait. */
#define ANSWER_TURNS 50
#define TURN_MS	     100
#define END_MS	     1000

struct answer {
	int32_t result; /* PID of the started process, 0, or -errno */
};

struct started {
	pid_t pid;
	int pidfd;
};

/* State of the broker process. */
struct service {
	const struct broker_task *tasks;
	int socket;
	struct started started[STARTED_MAX];
};

/*
 * The tool's side; a process has one broker (broker.h). The socket is -1 after the broker was
 * abandoned.
 */
static int broker_socket = -1;
static pid_t broker_pid = -1;
/* Of each work, and of WORK_KILL: turns to wait for an answer; 0: without limit. */
static int answer_turns[BROKER_WORKS + 1];

/* Sends data, with a descriptor unless fd is -1. */
static int send_with(int socket, void *data, size_t size, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {data, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	do {
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return sent == (ssize_t)size ? 0 : -EIO;
}

/* Receives data. *fd is -1 if no descriptor came. -EPIPE: the other side has closed the socket. */
static int receive_with(int socket, void *data, size_t size, int *fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {data, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 /* No padding: it would have room for a second descriptor. */
				 .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t got;

	*fd = -1;
	do {
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    control.header.cmsg_level == SOL_SOCKET && control.header.cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(&control.header), sizeof(*fd));
	if (got == (ssize_t)size)
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return got ? -EIO : -EPIPE;
}

static bool has_ended(const struct started *started)
{
	struct pollfd end = {.fd = started->pidfd, .events = POLLIN};

	return !started->pid || poll(&end, 1, 0) == 1;
}

/* Finds a free slot. There are few, so that an attacker cannot fill the machine with processes. */
static struct started *find_place(struct service *service)
{
	for (int i = 0; i < STARTED_MAX; i++) {
		struct started *started = &service->started[i];

		if (!has_ended(started))
			continue;
		if (started->pid)
			close(started->pidfd);
		*started = (struct started){.pidfd = -1};
		return started;
	}
	return NULL;
}

/* Kills by pidfd, because the PID may be reused once the tool has waited for the process. */
static int end_started(struct service *service, pid_t pid)
{
	for (int i = 0; i < STARTED_MAX; i++) {
		struct started *started = &service->started[i];

		if (!pid || started->pid != pid)
			continue;
		if (syscall(SYS_pidfd_send_signal, started->pidfd, SIGKILL, NULL, 0))
			return -errno;
		return 0;
	}
	return -ESRCH;
}

/* Starts the task as a child of the tool, not of the broker, so that the tool can wait for it. */
static int run_task(struct service *service, const struct broker_order *order, int output)
{
	const struct broker_task *task = &service->tasks[order->work];
	struct started *started = find_place(service);
	int pidfd = -1;
	pid_t pid;

	if (!started)
		return -EAGAIN;
	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
	if (pid < 0)
		return -errno;
	if (!pid) {
		task->run(task->ctx, order, output);
		_exit(1);
	}
	*started = (struct started){.pid = pid, .pidfd = pidfd};
	return pid;
}

/* Carries out an order. *made is set to a descriptor to send with the answer, or stays -1. */
static int obey(struct service *service, const struct broker_order *order, int output, int *made)
{
	const struct broker_task *task;

	if (order->work == WORK_KILL)
		return end_started(service, (pid_t)order->tgid);
	if (order->work > WORK_KILL)
		return -EINVAL;
	task = &service->tasks[order->work];
	if (task->run)
		return output < 0 ? -EBADF : run_task(service, order, output);
	if (!task->open)
		return -ENOSYS;
	*made = task->open(task->ctx, order);
	return *made < 0 ? *made : 0;
}

static _Noreturn void serve(struct service *service)
{
	for (;;) {
		struct broker_order order;
		struct answer answer;
		int output, made = -1, err;

		err = receive_with(service->socket, &order, sizeof(order), &output);
		if (err)
			_exit(err != -EPIPE);
		order.path[sizeof(order.path) - 1] = '\0';
		answer.result = obey(service, &order, output, &made);
		err = send_with(service->socket, &answer, sizeof(answer), made);
		if (output >= 0)
			close(output);
		if (made >= 0)
			close(made);
		if (err)
			_exit(1);
	}
}

/* Ctrl-C and a service stop signal all our processes; the broker must outlive the tool. */
static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

/*
 * What runs at a low priority may come back to the ordinary one without CAP_SYS_NICE if this limit
 * allows it. Set for the broker and what it starts, while it may.
 */
static void allow_ordinary_priority(void)
{
	const struct rlimit ordinary = {20, 20};

	(void)setrlimit(RLIMIT_NICE, &ordinary);
}

static _Noreturn void run_broker(struct service *service, pid_t tool)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* The broker may still wait for a file system when the tool ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != tool)
		_exit(0);
	prctl(PR_SET_NAME, NAME);
	/* The broker must not keep the tool's standard files, perhaps pipes, open. */
	for (int fd = 0; fd < 3 && nothing >= 0; fd++)
		dup2(nothing, fd);
	serve(service);
}

int broker_start(const struct broker_task tasks[BROKER_WORKS], void (*give_up)(const void *ctx),
		 const void *ctx)
{
	int ends[2] = {-1, -1}, err = 0;
	pid_t tool = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		err = -errno;
	broker_pid = err ? -1 : fork();
	if (!err && broker_pid < 0)
		err = -errno;
	if (err) {
		log_err("broker: %s", strerror(-err));
		if (ends[0] >= 0)
			close(ends[0]);
	} else if (!broker_pid) {
		struct service service = {.tasks = tasks, .socket = ends[1]};

		broker_pid = -1; /* the broker has no broker */
		close(ends[0]);
		block_signals();
		allow_ordinary_priority();
		if (give_up)
			give_up(ctx);
		run_broker(&service, tool);
	} else {
		broker_socket = ends[0];
		answer_turns[WORK_KILL] = ANSWER_TURNS;
		for (int i = 0; i < BROKER_WORKS; i++) {
			int turns = tasks[i].answer_turns ? tasks[i].answer_turns : ANSWER_TURNS;

			answer_turns[i] = tasks[i].may_wait ? 0 : turns;
		}
	}
	if (ends[1] >= 0)
		close(ends[1]);
	return err;
}

static void close_socket(void)
{
	if (broker_socket >= 0)
		close(broker_socket);
	broker_socket = -1;
}

void broker_stop(void)
{
	if (broker_pid < 0)
		return;
	close_socket();
	for (int i = 0; i < END_MS && !waitpid(broker_pid, NULL, WNOHANG); i++)
		usleep(1000);
	broker_pid = -1;
}

bool broker_is_there(void)
{
	return broker_pid >= 0;
}

/* Count poll turns, not time: SIGSTOP of both processes must not look like a hung broker. */
static int await_answer(int turns)
{
	struct pollfd answer = {.fd = broker_socket, .events = POLLIN};

	for (int i = 0; !turns || i < turns; i++) {
		if (poll(&answer, 1, TURN_MS) > 0)
			return 0;
	}
	log_warn("the broker process does not answer, because a file system does not: the window "
		 "continues without it (no search for candidates, no further GPU records, no "
		 "Python steps of new processes)");
	close_socket();
	return -ETIMEDOUT;
}

/* Sends an order and waits for the answer. Returns the result of obey, or -errno. */
static int give_order(struct broker_order *order, int output, int *made)
{
	/* The broker refuses a work that there is not. */
	int turns = order->work <= WORK_KILL ? answer_turns[order->work] : ANSWER_TURNS;
	struct answer answer = {0};
	int err = -EPIPE;

	*made = -1;
	if (broker_socket >= 0)
		err = send_with(broker_socket, order, sizeof(*order), output);
	if (!err)
		err = await_answer(turns);
	if (!err)
		err = receive_with(broker_socket, &answer, sizeof(answer), made);
	return err ? err : answer.result;
}

int broker_run(enum broker_work work, uint32_t tgid, int output, pid_t *pid)
{
	struct broker_order order = {.work = work, .tgid = tgid};
	int made, result = give_order(&order, output, &made);

	*pid = result > 0 ? result : -1;
	if (made >= 0)
		close(made);
	return result > 0 ? 0 : result ? result : -EIO;
}

void broker_kill(pid_t pid)
{
	struct broker_order order = {.work = WORK_KILL, .tgid = (uint32_t)pid};
	int made;

	if (broker_is_there()) {
		(void)give_order(&order, -1, &made);
		return;
	}
	kill(pid, SIGKILL);
}

int broker_open(enum broker_work work, uint32_t tgid, uint32_t number, const char *path)
{
	struct broker_order order = {.work = work, .tgid = tgid, .number = number};
	int made, err;

	if (path && strlen(path) >= sizeof(order.path))
		return -ENAMETOOLONG;
	if (path)
		memcpy(order.path, path, strlen(path) + 1);
	err = give_order(&order, -1, &made);
	if (!err && made < 0)
		err = -EBADF;
	return err ? err : made;
}
