/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "proc/namespace.h"
#include <fcntl.h>
#include <string.h>
#include "child_fixture.h"

#define MS 1000000ull

static void free_accepts_null(void **state)
{
	ns_tids__free(NULL);
}

static void in_our_namespace_numbers_stay_as_they_are(void **state)
{
	struct ns_tids *tids = ns_tids__new((uint32_t)getpid());

	assert_int_equal(ns_tids__find(tids, (uint32_t)getpid(), 1), getpid());
	/* Even for a thread that has ended or never existed. */
	assert_int_equal(ns_tids__find(tids, 4194303, 1), 4194303);
	assert_int_equal(ns_tids__find(tids, 0, 1), 0);
	ns_tids__free(tids);
}

/* A process that ended before the first look is unknown. */
static void of_a_process_that_is_gone_nothing_is_known(void **state)
{
	struct ns_tids *tids;
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	tids = ns_tids__new((uint32_t)child);
	assert_int_equal(ns_tids__find(tids, 5, 1), 0);
	ns_tids__free(tids);
}

struct inside {
	int wish[2];
	int answer[2];
	int started[2]; /* from a thread: its number */
	int end[2];	/* to the threads: one of them ends for each byte */
};

static void *be_a_thread(void *ctx)
{
	struct inside *inside = ctx;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	char byte;

	if (write(inside->started[1], &tid, sizeof(tid)) != sizeof(tid) ||
	    read(inside->end[0], &byte, 1) != 1)
		_exit(1);
	return NULL;
}

static uint32_t start_thread(struct inside *inside, pthread_t *thread)
{
	uint32_t tid;

	if (pthread_create(thread, NULL, be_a_thread, inside) ||
	    read(inside->started[0], &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	return tid;
}

static void end_thread(struct inside *inside, pthread_t thread)
{
	if (write(inside->end[1], "", 1) != 1)
		_exit(1);
	pthread_join(thread, NULL);
}

/* A new thread in the place of that one, with its number. 0 where the kernel takes no wishes. */
static uint32_t replace_thread(struct inside *inside, pthread_t *thread, uint32_t tid)
{
	char last[16];
	int fd;

	snprintf(last, sizeof(last), "%u", tid - 1);
	do {
		end_thread(inside, *thread);
		/* The kernel means numbers of the writer's namespace. */
		fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
		if (fd < 0 || write(fd, last, strlen(last)) < 0)
			return 0;
		close(fd);
		/* A thread keeps its number for a moment after it was joined. */
	} while (start_thread(inside, thread) != tid);
	return tid;
}

/*
 * First process of a PID namespace: reports its number, and creates a thread for each byte; for an
 * 'r' in the place of the last one.
 */
static void live_inside(struct inside *inside)
{
	uint32_t tid = (uint32_t)getpid();
	pthread_t thread = 0;
	char byte;

	if (pipe(inside->started) || pipe(inside->end))
		_exit(1);
	do {
		if (write(inside->answer[1], &tid, sizeof(tid)) != sizeof(tid) ||
		    read(inside->wish[0], &byte, 1) != 1)
			break;
		tid = byte == 'r' ? replace_thread(inside, &thread, tid)
				  : start_thread(inside, &thread);
	} while (true);
	_exit(0);
}

static uint32_t next_answer(struct inside *inside)
{
	uint32_t answer = 0;

	assert_int_equal(read(inside->answer[0], &answer, sizeof(answer)), sizeof(answer));
	return answer;
}

/* Skips the test where no namespace can be made. */
static pid_t begin_inside(struct inside *inside)
{
	pid_t child;

	assert_int_equal(pipe(inside->wish), 0);
	assert_int_equal(pipe(inside->answer), 0);
	child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		skip();
	if (!child) {
		close(inside->wish[1]);
		live_inside(inside);
	}
	assert_int_equal(next_answer(inside), 1);
	return child;
}

/* The only thread of the process besides its first one. */
static uint32_t look_up_thread(struct ns_tids *tids, struct inside *inside, uint64_t *now_ns)
{
	uint32_t inner;

	assert_int_equal(write(inside->wish[1], "x", 1), 1);
	inner = next_answer(inside);
	*now_ns += 10000 * MS;
	assert_int_equal(ns_tids__find(tids, inner, *now_ns) > inner, 1);
	return inner;
}

static void in_another_namespace_numbers_are_looked_up(void **state)
{
	struct inside inside;
	uint64_t now_ns = 1000 * MS;
	struct ns_tids *tids;
	uint32_t inner, unknown = 30000;
	pid_t child;

	child = begin_inside(&inside);
	tids = ns_tids__new((uint32_t)child);
	assert_int_equal(ns_tids__find(tids, 1, now_ns), child);
	inner = look_up_thread(tids, &inside, &now_ns);

	/* A thread that was missing at the last look is searched for again, but not too often. */
	assert_int_equal(ns_tids__find(tids, unknown, now_ns + 101 * MS), 0);
	assert_int_equal(write(inside.wish[1], "x", 1), 1);
	unknown = next_answer(&inside);
	assert_int_equal(ns_tids__find(tids, unknown, now_ns + 201 * MS), 0);
	assert_int_equal(ns_tids__find(tids, unknown, now_ns + 10000 * MS) > unknown, 1);

	/* A thread that was found once is known even after its process has ended. */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(ns_tids__find(tids, 1, now_ns + 20000 * MS), child);
	assert_true(ns_tids__find(tids, inner, now_ns + 20000 * MS) != 0);
	assert_int_equal(ns_tids__find(tids, 31000, now_ns + 20000 * MS), 0);
	ns_tids__free(tids);
}

static void a_number_may_be_that_of_a_new_thread(void **state)
{
	struct inside inside;
	uint64_t now_ns = 1000 * MS;
	uint32_t inner, outer, again;
	struct ns_tids *tids;
	pid_t child;

	child = begin_inside(&inside);
	tids = ns_tids__new((uint32_t)child);
	inner = look_up_thread(tids, &inside, &now_ns);
	outer = ns_tids__find(tids, inner, now_ns);
	assert_int_equal(write(inside.wish[1], "r", 1), 1);
	again = next_answer(&inside);
	if (again) {
		assert_int_equal(again, inner);
		assert_int_not_equal(ns_tids__find(tids, inner, now_ns + 11000 * MS), outer);
		assert_true(ns_tids__find(tids, inner, now_ns + 11000 * MS) > inner);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ns_tids__free(tids);
	if (!again)
		skip();
}

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
	/* The format before Linux 5.11. */
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

/* Its children are in a time namespace that is three hours ahead. */
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
	child = child_fork();
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
	parent = child_fork();
	if (!parent)
		_exit(be_in_namespace(ends[1]));
	close(ends[1]);
	got = read(ends[0], &child, sizeof(child));
	close(ends[0]);
	if (got == sizeof(child)) {
		assert_int_equal(time_namespace_offset((uint32_t)child), 10800000000007);
		/* The parent itself is still in our namespace. */
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
		cmocka_unit_test(free_accepts_null),
		cmocka_unit_test(in_our_namespace_numbers_stay_as_they_are),
		cmocka_unit_test(of_a_process_that_is_gone_nothing_is_known),
		cmocka_unit_test(in_another_namespace_numbers_are_looked_up),
		cmocka_unit_test(a_number_may_be_that_of_a_new_thread),
		cmocka_unit_test(a_line_is_parsed),
		cmocka_unit_test(what_is_no_offset_of_that_clock_is_not_taken),
		cmocka_unit_test(our_own_clock_is_not_off),
		cmocka_unit_test(the_offset_of_a_namespace_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
