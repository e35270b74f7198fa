/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_tids.h"

#define MS 1000000ull

static void free_accepts_null(void **state)
{
	gpu_tids__free(NULL);
}

static void a_line_is_parsed(void **state)
{
	uint32_t outer, inner, depth;

	assert_true(gpu_tids_parse("NSpid:\t1234\n", &outer, &inner, &depth));
	assert_int_equal(outer, 1234);
	assert_int_equal(inner, 1234);
	assert_int_equal(depth, 1);
	assert_true(gpu_tids_parse("NSpid:\t1234\t56\t7\n", &outer, &inner, &depth));
	assert_int_equal(outer, 1234);
	assert_int_equal(inner, 7);
	assert_int_equal(depth, 3);
	assert_false(gpu_tids_parse("NSpgid:\t1234\t56\n", &outer, &inner, &depth));
	assert_false(gpu_tids_parse("Name:\tNSpid:\t5\n", &outer, &inner, &depth));
	assert_false(gpu_tids_parse("NSpid:\n", &outer, &inner, &depth));
	assert_false(gpu_tids_parse("NSpid:\t0\t5\n", &outer, &inner, &depth));
	assert_false(gpu_tids_parse("", &outer, &inner, &depth));
}

static void in_our_namespace_numbers_stay_as_they_are(void **state)
{
	struct gpu_tids *tids = gpu_tids__new((uint32_t)getpid());

	assert_int_equal(gpu_tids__find(tids, (uint32_t)getpid(), 1), getpid());
	/* Also of a thread that ended, or never was. */
	assert_int_equal(gpu_tids__find(tids, 4194303, 1), 4194303);
	assert_int_equal(gpu_tids__find(tids, 0, 1), 0);
	gpu_tids__free(tids);
}

/* It is unknown what was before it was ever looked at. */
static void of_a_process_that_is_gone_nothing_is_known(void **state)
{
	struct gpu_tids *tids;
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	tids = gpu_tids__new((uint32_t)child);
	assert_int_equal(gpu_tids__find(tids, 5, 1), 0);
	gpu_tids__free(tids);
}

struct inside {
	int wish[2];
	int answer[2];
};

static void *be_a_thread(void *ctx)
{
	struct inside *inside = ctx;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	if (write(inside->answer[1], &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	for (;;)
		pause();
	return NULL;
}

/* First process of a PID namespace: says its number, and makes a thread for each byte. */
static void live_inside(struct inside *inside)
{
	uint32_t pid = (uint32_t)getpid();
	pthread_t thread;
	char byte;

	if (write(inside->answer[1], &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	while (read(inside->wish[0], &byte, 1) == 1)
		pthread_create(&thread, NULL, be_a_thread, inside);
	_exit(0);
}

static uint32_t next_answer(struct inside *inside)
{
	uint32_t answer = 0;

	assert_int_equal(read(inside->answer[0], &answer, sizeof(answer)), sizeof(answer));
	return answer;
}

/* The only thread of the process besides the first one. */
static uint32_t look_up_thread(struct gpu_tids *tids, struct inside *inside, uint64_t *now_ns)
{
	uint32_t inner;

	assert_int_equal(write(inside->wish[1], "x", 1), 1);
	inner = next_answer(inside);
	*now_ns += 10000 * MS;
	assert_int_equal(gpu_tids__find(tids, inner, *now_ns) > inner, 1);
	return inner;
}

static void in_another_namespace_numbers_are_looked_up(void **state)
{
	struct inside inside;
	uint64_t now_ns = 1000 * MS;
	struct gpu_tids *tids;
	uint32_t inner, unknown = 30000;
	pid_t child;

	assert_int_equal(pipe(inside.wish), 0);
	assert_int_equal(pipe(inside.answer), 0);
	child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		skip();
	if (!child) {
		close(inside.wish[1]);
		live_inside(&inside);
	}
	assert_int_equal(next_answer(&inside), 1);
	tids = gpu_tids__new((uint32_t)child);
	assert_int_equal(gpu_tids__find(tids, 1, now_ns), child);
	inner = look_up_thread(tids, &inside, &now_ns);

	/* One that was not there at the last look is looked for, but not all the time. */
	assert_int_equal(gpu_tids__find(tids, unknown, now_ns + 101 * MS), 0);
	assert_int_equal(write(inside.wish[1], "x", 1), 1);
	unknown = next_answer(&inside);
	assert_int_equal(gpu_tids__find(tids, unknown, now_ns + 201 * MS), 0);
	assert_int_equal(gpu_tids__find(tids, unknown, now_ns + 10000 * MS) > unknown, 1);

	/* What was found once is known when the process is gone. */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(gpu_tids__find(tids, 1, now_ns + 20000 * MS), child);
	assert_true(gpu_tids__find(tids, inner, now_ns + 20000 * MS) != 0);
	assert_int_equal(gpu_tids__find(tids, 31000, now_ns + 20000 * MS), 0);
	gpu_tids__free(tids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_accepts_null),
		cmocka_unit_test(a_line_is_parsed),
		cmocka_unit_test(in_our_namespace_numbers_stay_as_they_are),
		cmocka_unit_test(of_a_process_that_is_gone_nothing_is_known),
		cmocka_unit_test(in_another_namespace_numbers_are_looked_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
