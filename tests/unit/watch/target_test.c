/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/target.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "proc/open.h"

struct child {
	pid_t pid;
	int block; /* closed: it ends */
};

static void *wait_for_end(void *arg)
{
	const int *block = arg;
	char byte;

	_exit(read(*block, &byte, 1) != 0);
}

/* A child; with a thread that outlives its first one, or without. */
static struct child start_child(bool leaderless)
{
	static int ends[2];
	struct child child;
	pthread_t thread;

	assert_int_equal(pipe(ends), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		close(ends[1]);
		if (leaderless && !pthread_create(&thread, NULL, wait_for_end, &ends[0]))
			pthread_exit(NULL);
		wait_for_end(&ends[0]);
	}
	close(ends[0]);
	child.block = ends[1];
	return child;
}

static bool is_zombie(pid_t pid)
{
	FILE *file = proc_fopen((struct proc_ref){.tgid = (uint32_t)pid}, "stat");
	char state = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
	fclose(file);
	return state == 'Z';
}

static void end_child(const struct child *child)
{
	close(child->block);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static void a_process_that_has_ended_does_not_run(void **state)
{
	struct child child = start_child(false);
	uint64_t start = 0;

	assert_true(target_find_start((uint32_t)child.pid, &start));
	assert_true(start);
	close(child.block);
	while (!is_zombie(child.pid))
		usleep(1000);
	assert_false(target_find_start((uint32_t)child.pid, &start));
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	assert_false(target_find_start((uint32_t)child.pid, &start));
}

static void a_process_without_its_first_thread_runs(void **state)
{
	struct child child = start_child(true);
	uint64_t start = 0;

	while (!is_zombie(child.pid))
		usleep(1000);
	assert_true(target_find_start((uint32_t)child.pid, &start));
	assert_true(start);
	end_child(&child);
}

/* Else it would be heard from, or told, in the future: as long ago as can be, to a subtraction. */
static void a_pause_moves_no_time_beyond_its_end(void **state)
{
	struct target target = {.heard_ns = 100, .told_ns = 0};

	target__pardon(&target, 30, 200);
	assert_int_equal(target.heard_ns, 130);
	assert_int_equal(target.told_ns, 0);
	target.told_ns = 190;
	target__pardon(&target, 80, 200);
	assert_int_equal(target.heard_ns, 200);
	assert_int_equal(target.told_ns, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_has_ended_does_not_run),
		cmocka_unit_test(a_process_without_its_first_thread_runs),
		cmocka_unit_test(a_pause_moves_no_time_beyond_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
