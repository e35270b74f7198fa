/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "time_namespace.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static void a_line_is_parsed(void **state)
{
	int64_t offset_ns;

	assert_true(time_namespace_parse("monotonic           0         0\n", &offset_ns));
	assert_int_equal(offset_ns, 0);
	assert_true(time_namespace_parse("monotonic       86400 500000000\n", &offset_ns));
	assert_int_equal(offset_ns, 86400500000000);
	assert_true(time_namespace_parse("monotonic         -10 250000000\n", &offset_ns));
	assert_int_equal(offset_ns, -9750000000);
	/* Before Linux 5.11. */
	assert_true(time_namespace_parse("         1           5         6\n", &offset_ns));
	assert_int_equal(offset_ns, 5000000006);
}

static void what_is_no_offset_of_that_clock_is_not_taken(void **state)
{
	static const char *const lines[] = {"boottime  5 6\n",
					    "7 5 6\n",
					    "",
					    "\n",
					    "monotonic\n",
					    "monotonic 5\n",
					    "monotonic 5 -1\n",
					    "monotonic 5 1000000000\n",
					    "monotonic 9223372036854775807 0\n"};
	int64_t offset_ns;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(time_namespace_parse(lines[i], &offset_ns));
}

static void our_own_clock_is_not_off(void **state)
{
	assert_int_equal(time_namespace_offset((uint32_t)getpid()), 0);
	assert_int_equal(time_namespace_offset(0), 0);
}

/* Its children are in a namespace that is three hours ahead. */
static int be_in_namespace(int ready)
{
	static const char text[] = "monotonic 10800 7";
	pid_t child;
	int fd;

	if (unshare(CLONE_NEWTIME))
		return 1;
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return 1;
	child = fork();
	while (!child)
		pause();
	if (child < 0 || write(ready, &child, sizeof(child)) != sizeof(child))
		return 1;
	pause();
	return 0;
}

static void the_offset_of_a_namespace_is_found(void **state)
{
	pid_t parent, child = 0;
	ssize_t got;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	parent = fork();
	if (!parent)
		_exit(be_in_namespace(ends[1]));
	close(ends[1]);
	got = read(ends[0], &child, sizeof(child));
	close(ends[0]);
	if (got == sizeof(child)) {
		assert_int_equal(time_namespace_offset((uint32_t)child), 10800000000007);
		/* The parent itself is still in ours. */
		assert_int_equal(time_namespace_offset((uint32_t)parent), 0);
		kill(child, SIGKILL);
	}
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	if (got != sizeof(child))
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_parsed),
		cmocka_unit_test(what_is_no_offset_of_that_clock_is_not_taken),
		cmocka_unit_test(our_own_clock_is_not_off),
		cmocka_unit_test(the_offset_of_a_namespace_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
