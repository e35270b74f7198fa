/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "processes.h"
#include "stderr_fixture.h"

static const struct process_entry *find(const process_vec *processes, uint32_t tgid)
{
	vec_for_each (process, processes) {
		if (process->tgid == tgid)
			return process;
	}
	return NULL;
}

/* A child that waits to be killed. */
static pid_t start_waiting(void)
{
	int named[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(named), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* Its name looks like the end of a name and the fields behind it. */
		prctl(PR_SET_NAME, "a) S 1 (b");
		if (write(named[1], "n", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(named[0], &byte, 1), 1);
	close(named[0]);
	close(named[1]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void list_without_descriptors_is_emfile(void **state)
{
	process_vec processes = {0};
	struct rlimit before, none;
	int err;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	err = processes_list(&processes);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(err, -EMFILE);
	assert_int_equal(processes.count, 0);
	assert_one_line(*state, "/proc: ");
}

static void list_leaves_ourselves_and_kernel_threads_out(void **state)
{
	process_vec processes = {0};

	assert_int_equal(processes_list(&processes), 0);
	assert_null(find(&processes, (uint32_t)getpid()));
	vec_for_each (process, &processes) {
		assert_int_not_equal(process->tgid, 2);
		assert_int_not_equal(process->parent_tgid, 2);
	}
	vec_free(&processes);
}

static void list_has_a_child_of_any_name_and_its_parent(void **state)
{
	pid_t pid = start_waiting();
	process_vec processes = {0};
	const struct process_entry *child;

	assert_int_equal(processes_list(&processes), 0);
	stop(pid);
	child = find(&processes, (uint32_t)pid);
	assert_non_null(child);
	assert_int_equal(child->parent_tgid, getpid());
	vec_free(&processes);
}

static void list_appends(void **state)
{
	process_vec processes = {0};

	vec_push(&processes, ((struct process_entry){.tgid = 1, .parent_tgid = 99}));
	assert_int_equal(processes_list(&processes), 0);
	assert_true(processes.count > 1);
	assert_int_equal(processes.items[0].parent_tgid, 99);
	vec_free(&processes);
}

/* 1 has 10, that has 11, that has 12; 20 and 21 are each other's parent. */
static process_vec make_family(void)
{
	static const struct process_entry entries[] = {{12, 11}, {10, 1},  {20, 21},
						       {21, 20}, {11, 10}, {1, 0}};
	process_vec family = {0};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		assert_int_equal(vec_push(&family, entries[i]), 0);
	return family;
}

static void none_descends_from_no_roots(void **state)
{
	process_vec family = make_family();

	assert_false(processes_descends(&family, 12, NULL, 0));
	vec_free(&family);
}

static void descent_in_a_circle_ends(void **state)
{
	process_vec family = make_family();
	uint32_t root = 10;

	assert_false(processes_descends(&family, 20, &root, 1));
	vec_free(&family);
}

static void a_process_that_is_not_listed_descends_from_itself_alone(void **state)
{
	process_vec family = make_family();
	uint32_t roots[] = {10, 77};

	assert_false(processes_descends(&family, 76, roots, 2));
	assert_true(processes_descends(&family, 77, roots, 2));
	vec_free(&family);
}

static void a_grandchild_descends_and_a_parent_does_not(void **state)
{
	process_vec family = make_family();
	uint32_t roots[] = {77, 10};

	assert_true(processes_descends(&family, 12, roots, 2));
	assert_true(processes_descends(&family, 11, roots, 2));
	assert_true(processes_descends(&family, 10, roots, 2));
	assert_false(processes_descends(&family, 1, roots, 2));
	vec_free(&family);
}

static void the_longest_line_of_descent_is_followed_to_its_end(void **state)
{
	process_vec line = {0};
	uint32_t root = 1;

	for (uint32_t tgid = 2; tgid <= 50; tgid++)
		vec_push(&line, ((struct process_entry){.tgid = tgid, .parent_tgid = tgid - 1}));
	assert_true(processes_descends(&line, 50, &root, 1));
	vec_free(&line);
}

static void threads_are_none_if_they_cannot_be_counted(void **state)
{
	struct rlimit before, none;
	uint32_t count;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	count = processes_count_threads(0);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(count, 0);
}

static void there_are_at_least_as_many_threads_as_processes(void **state)
{
	process_vec processes = {0};

	assert_int_equal(processes_list(&processes), 0);
	/* Some may have ended since. */
	assert_true(processes_count_threads(0) > processes.count / 2);
	vec_free(&processes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(list_without_descriptors_is_emfile),
		TEST(list_leaves_ourselves_and_kernel_threads_out),
		TEST(list_has_a_child_of_any_name_and_its_parent),
		TEST(list_appends),
		TEST(none_descends_from_no_roots),
		TEST(descent_in_a_circle_ends),
		TEST(a_process_that_is_not_listed_descends_from_itself_alone),
		TEST(a_grandchild_descends_and_a_parent_does_not),
		TEST(the_longest_line_of_descent_is_followed_to_its_end),
		TEST(threads_are_none_if_they_cannot_be_counted),
		TEST(there_are_at_least_as_many_threads_as_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
