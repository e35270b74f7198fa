/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/broker.h"
#include "stderr_fixture.h"

static const char greeting[] = "as it was settled";

/* Reports what it was started with, and its parent. */
static void tell(const void *ctx, const struct broker_order *order, int output)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "%s: %u of %d", (const char *)ctx, order->tgid,
			      (int)getppid());

	_exit(write(output, text, (size_t)length) == length ? 7 : 1);
}

static void wait_for_ever(const void *ctx, const struct broker_order *order, int output)
{
	(void)ctx;
	(void)order;
	(void)output;
	for (;;)
		pause();
}

static int open_one(const void *ctx, const struct broker_order *order)
{
	int fd;

	(void)ctx;
	if (order->number != 5)
		return -ENXIO;
	fd = open(order->path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int set_up(void **state)
{
	const struct broker_task tasks[BROKER_WORKS] = {
		[BROKER_HINT] = {.run = tell, .ctx = greeting},
		[BROKER_INJECT] = {.run = wait_for_ever},
		[BROKER_MEMFD] = {.open = open_one},
	};

	(void)state;
	return broker_start(tasks, NULL, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	broker_stop();
	return 0;
}

static void what_it_starts_is_our_child_and_does_what_was_settled(void **state)
{
	char got[128] = "", wanted[128];
	int ends[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(broker_run(BROKER_HINT, 42, ends[1], &pid), 0);
	close(ends[1]);
	assert_true(pid > 0);
	assert_true(read(ends[0], got, sizeof(got) - 1) > 0);
	snprintf(wanted, sizeof(wanted), "%s: 42 of %d", greeting, (int)getpid());
	assert_string_equal(got, wanted);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	/* No other process holds the other end. */
	assert_int_equal(read(ends[0], got, sizeof(got)), 0);
	close(ends[0]);
}

static void what_it_started_is_killed_by_it(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(broker_run(BROKER_INJECT, 1, STDOUT_FILENO, &pid), 0);
	broker_kill(pid);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	/* The process has ended already, so this must do nothing. */
	broker_kill(pid);
}

static void others_are_not_killed_by_it(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		for (;;)
			pause();
	}
	broker_kill(pid);
	usleep(20000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void what_it_opens_is_ours(void **state)
{
	int fd = broker_open(BROKER_MEMFD, 1, 5, "/dev/zero");
	char byte = 1;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	close(fd);
}

static void what_it_cannot_open_it_says(void **state)
{
	char path[PATH_MAX + 1];

	(void)state;
	memset(path, '/', sizeof(path) - 1);
	path[PATH_MAX] = '\0';
	assert_int_equal(broker_open(BROKER_MEMFD, 1, 5, "/no/such/file"), -ENOENT);
	assert_int_equal(broker_open(BROKER_MEMFD, 1, 4, NULL), -ENXIO);
	assert_int_equal(broker_open(BROKER_MEMFD, 1, 5, path), -ENAMETOOLONG);
}

static void what_was_not_settled_is_refused(void **state)
{
	pid_t pid;

	(void)state;
	assert_int_equal(broker_open(BROKER_LOOK, 1, 5, "/dev/zero"), -ENOSYS);
	assert_int_equal(broker_run(BROKER_LOOK, 1, STDOUT_FILENO, &pid), -ENOSYS);
	assert_int_equal(pid, -1);
	assert_int_equal(broker_run(1000, 1, STDOUT_FILENO, &pid), -EINVAL);
	assert_int_equal(broker_run(BROKER_HINT, 1, -1, &pid), -EBADF);
}

/* The broker starts only as many processes as it can keep track of, and can kill each of them. */
static void it_starts_no_more_than_it_can_end(void **state)
{
	pid_t pids[8], pid;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++)
			assert_int_equal(broker_run(BROKER_INJECT, 1, STDOUT_FILENO, &pids[i]), 0);
		assert_int_equal(broker_run(BROKER_INJECT, 1, STDOUT_FILENO, &pid), -EAGAIN);
		for (int i = 0; i < 8; i++) {
			broker_kill(pids[i]);
			assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		}
	}
}

static int look_for_broker(const void *ctx, const struct broker_order *order)
{
	(void)ctx;
	(void)order;
	return broker_is_there() ? -EEXIST : -ENXIO;
}

static void the_broker_has_none_itself(void **state)
{
	const struct broker_task tasks[BROKER_WORKS] = {[BROKER_LOOK] = {.open = look_for_broker}};

	(void)state;
	assert_int_equal(broker_start(tasks, NULL, NULL), 0);
	assert_int_equal(broker_open(BROKER_LOOK, 1, 0, "/"), -ENXIO);
	broker_stop();
}

static int open_never(const void *ctx, const struct broker_order *order)
{
	(void)ctx;
	(void)order;
	while (true)
		pause();
	return -1;
}

/* Like a file system whose server is the target. */
static void one_that_does_not_answer_is_given_up(void **state)
{
	const struct broker_task tasks[BROKER_WORKS] = {
		[BROKER_LOOK] = {.open = open_never, .answer_turns = 1}};
	struct stderr_fixture *fixture;
	void *said = NULL;
	pid_t pid;

	(void)state;
	assert_int_equal(stderr_setup(&said), 0);
	fixture = said;
	assert_int_equal(broker_start(tasks, NULL, NULL), 0);
	assert_int_equal(broker_open(BROKER_LOOK, 1, 0, "/"), -ETIMEDOUT);
	assert_one_line(fixture, "does not answer");
	/* After the broker has failed, the tool must not try the work itself. */
	assert_true(broker_is_there());
	assert_int_equal(broker_open(BROKER_LOOK, 1, 0, "/"), -EPIPE);
	assert_int_equal(broker_run(BROKER_HINT, 1, STDOUT_FILENO, &pid), -EPIPE);
	broker_stop();
	assert_false(broker_is_there());
	stderr_teardown(&said);
}

static void one_that_does_not_answer_ends_with_us(void **state)
{
	const struct broker_task tasks[BROKER_WORKS] = {[BROKER_LOOK] = {.open = open_never}};
	struct pollfd end = {.events = POLLIN};
	int ends[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		if (!broker_start(tasks, NULL, NULL))
			broker_open(BROKER_LOOK, 1, 0, "/");
		_exit(0);
	}
	close(ends[1]);
	/* By then the broker most likely works on the order. If not, it ends as usual. */
	usleep(200000);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	end.fd = ends[0];
	assert_int_equal(poll(&end, 1, 30000), 1);
	close(ends[0]);
}

/* Answers after more than one turn of 100 ms. */
static int open_late(const void *ctx, const struct broker_order *order)
{
	(void)ctx;
	(void)order;
	usleep(300000);
	return -ENXIO;
}

static void one_that_may_wait_is_waited_for(void **state)
{
	const struct broker_task tasks[BROKER_WORKS] = {
		[BROKER_LOOK] = {.open = open_late, .may_wait = true, .answer_turns = 1}};

	(void)state;
	assert_int_equal(broker_start(tasks, NULL, NULL), 0);
	assert_int_equal(broker_open(BROKER_LOOK, 1, 0, "/"), -ENXIO);
	broker_stop();
}

static int count_files(const void *ctx, const struct broker_order *order)
{
	int count = 0;

	(void)ctx;
	(void)order;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return -count;
}

/* A compromised tool could send two descriptors, which fit where one and its padding do. */
static void no_more_than_one_descriptor_comes_in(void **state)
{
	const struct broker_task tasks[BROKER_WORKS] = {[BROKER_LOOK] = {.open = count_files}};
	struct broker_order order = {.work = BROKER_LOOK};
	int before, socket, answer, fds[2] = {0, 0};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(fds))}};
	struct iovec part = {&order, sizeof(order)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	(void)state;
	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	/* The next free descriptor becomes our end of the socket. */
	socket = dup(STDIN_FILENO);
	close(socket);
	assert_int_equal(broker_start(tasks, NULL, NULL), 0);
	before = broker_open(BROKER_LOOK, 1, 0, NULL);
	assert_int_equal(sendmsg(socket, &message, 0), sizeof(order));
	assert_int_equal(recv(socket, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(broker_open(BROKER_LOOK, 1, 0, NULL), before);
	broker_stop();
}

static void without_one_we_kill_ourselves(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_false(broker_is_there());
	pid = fork();
	if (!pid) {
		for (;;)
			pause();
	}
	broker_kill(pid);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	broker_stop();
}

/* A process that waits for the end of one of our pipes must not wait for the broker. */
static void it_ends_when_we_do_and_holds_nothing_of_ours(void **state)
{
	int ends[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		if (set_up(state))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_it_starts_is_our_child_and_does_what_was_settled),
		TEST(what_it_started_is_killed_by_it),
		TEST(others_are_not_killed_by_it),
		TEST(what_it_opens_is_ours),
		TEST(what_it_cannot_open_it_says),
		TEST(what_was_not_settled_is_refused),
		TEST(it_starts_no_more_than_it_can_end),
		cmocka_unit_test(the_broker_has_none_itself),
		cmocka_unit_test(one_that_does_not_answer_is_given_up),
		cmocka_unit_test(one_that_does_not_answer_ends_with_us),
		cmocka_unit_test(one_that_may_wait_is_waited_for),
		cmocka_unit_test(no_more_than_one_descriptor_comes_in),
		cmocka_unit_test(without_one_we_kill_ourselves),
		cmocka_unit_test(it_ends_when_we_do_and_holds_nothing_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
