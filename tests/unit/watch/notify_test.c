/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "watch/notify.h"

static int open_socket(const char *name, size_t length)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, name, length);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
			 0);
	return fd;
}

static void assert_sent(int fd, const char *wanted)
{
	char text[256];
	ssize_t size = recv(fd, text, sizeof(text) - 1, 0);

	assert_true(size > 0);
	text[size] = '\0';
	assert_string_equal(text, wanted);
	assert_int_equal(recv(fd, text, sizeof(text), 0), -1);
}

static void nobody_is_told_without_a_socket(void **state)
{
	struct notify notify;

	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	notify_open(&notify);
	assert_null(notify.path);
	assert_int_equal(notify.watchdog_ns, 0);
	assert_int_equal(notify_send(&notify, "READY=1"), 0);
	notify_close(&notify);
}

static void a_path_and_an_abstract_name_are_told(void **state)
{
	struct notify notify;
	char path[64], name[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/fbt_notify_%d", (int)getpid());
	unlink(path);
	fd = open_socket(path, strlen(path) + 1);
	setenv("NOTIFY_SOCKET", path, 1);
	notify_open(&notify);
	assert_int_equal(notify_send(&notify, "READY=1\nSTATUS=x"), 0);
	assert_sent(fd, "READY=1\nSTATUS=x");
	notify_close(&notify);
	close(fd);
	unlink(path);

	snprintf(name, sizeof(name), "@fbt_notify_%d", (int)getpid());
	path[0] = '\0';
	strcpy(path + 1, name + 1);
	fd = open_socket(path, strlen(name));
	setenv("NOTIFY_SOCKET", name, 1);
	notify_open(&notify);
	assert_int_equal(notify_send(&notify, "WATCHDOG=1"), 0);
	assert_sent(fd, "WATCHDOG=1");
	notify_close(&notify);
	close(fd);
	assert_int_equal(notify_send(&notify, "READY=1"), 0);
	unsetenv("NOTIFY_SOCKET");
}

static void a_listener_that_has_gone_is_an_error(void **state)
{
	struct notify notify;
	char name[200];

	setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
	notify_open(&notify);
	assert_int_equal(notify_send(&notify, "READY=1"), -ENOENT);
	notify_close(&notify);
	memset(name, 'a', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	setenv("NOTIFY_SOCKET", name, 1);
	notify_open(&notify);
	assert_int_equal(notify_send(&notify, "READY=1"), -ENAMETOOLONG);
	notify_close(&notify);
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_open(&notify);
	assert_null(notify.path);
	notify_close(&notify);
	unsetenv("NOTIFY_SOCKET");
}

static void readiness_is_told_once_there_is_room(void **state)
{
	struct notify notify;
	char name[64], text[64];
	int fd, sent = 0;

	snprintf(name, sizeof(name), "@fbt_ready_%d", (int)getpid());
	setenv("NOTIFY_SOCKET", name, 1);
	*name = '\0';
	fd = open_socket(name, strlen(name + 1) + 1);
	notify_open(&notify);
	notify_turn(&notify);
	assert_int_equal(recv(fd, text, sizeof(text), 0), -1);
	while (!notify_send(&notify, "WATCHDOG=1"))
		sent++;
	notify_ready(&notify);
	for (; sent; sent--)
		assert_int_equal(recv(fd, text, sizeof(text), 0), 10);
	assert_int_equal(recv(fd, text, sizeof(text), 0), -1);
	notify_turn(&notify);
	assert_sent(fd, "READY=1");
	notify_turn(&notify);
	assert_int_equal(recv(fd, text, sizeof(text), 0), -1);
	notify_close(&notify);
	close(fd);
	unsetenv("NOTIFY_SOCKET");
}

static uint64_t watchdog_of(const char *usec, const char *pid)
{
	struct notify notify;
	uint64_t ns;

	setenv("WATCHDOG_USEC", usec, 1);
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	else
		unsetenv("WATCHDOG_PID");
	notify_open(&notify);
	ns = notify.watchdog_ns;
	notify_close(&notify);
	return ns;
}

static void the_watchdog_is_told_three_times_as_often(void **state)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(watchdog_of("30000000", NULL), 10 * NS_PER_S);
	assert_int_equal(watchdog_of("30000000", pid), 10 * NS_PER_S);
	assert_int_equal(watchdog_of("30000000", "1"), 0);
	assert_int_equal(watchdog_of("", NULL), 0);
	assert_int_equal(watchdog_of("-5", NULL), 0);
	assert_int_equal(watchdog_of("5x", NULL), 0);
	assert_int_equal(watchdog_of("99999999999999999999999", NULL), 0);
	assert_int_equal(watchdog_of("18446744073709551615", NULL), 0);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_told_without_a_socket),
		cmocka_unit_test(a_path_and_an_abstract_name_are_told),
		cmocka_unit_test(a_listener_that_has_gone_is_an_error),
		cmocka_unit_test(readiness_is_told_once_there_is_room),
		cmocka_unit_test(the_watchdog_is_told_three_times_as_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
