/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which threads of a process are offered, and in which order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/thread.h"

#if defined(__x86_64__)

#include "thread_fixture.h"

#define MANY (INJECT_THREADS_LOOKED + 300)

static void list(const struct child *child, inject_thread_vec *threads)
{
	assert_int_equal(inject_threads_list(threads, (uint32_t)child->pid, 0, 0), 0);
}

/* Compares the list with the threads of those tasks, in that order. */
static void assert_listed(const struct child *child, const size_t *indexes, size_t count)
{
	inject_thread_vec threads = {0};

	list(child, &threads);
	assert_int_equal(threads.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(threads.items[i].tid, child->tids[indexes[i]]);
	vec_free(&threads);
}

#define assert_order(child, ...)                                                                   \
	do {                                                                                       \
		static const size_t order[] = {__VA_ARGS__};                                       \
		assert_listed(child, order, sizeof(order) / sizeof(*order));                       \
	} while (0)

static void a_line_is_read_in_full(void **state)
{
	struct inject_thread thread = {0};

	assert_int_equal(inject_thread_parse(&thread, "202 0x7f00 0x189 0x0 0x0 0x0 0xffffffff"
						      " 0x7ffd12345678 0x7f1122334455\n"),
			 0);
	assert_int_equal(thread.nr, 202);
	assert_int_equal(thread.args[0], 0x7f00);
	assert_int_equal(thread.args[1], 0x189);
	assert_int_equal(thread.args[5], 0xffffffff);
	assert_int_equal(thread.sp, 0x7ffd12345678);
	assert_int_equal(thread.pc, 0x7f1122334455);
}

static void a_line_that_tells_no_call_is_none(void **state)
{
	struct inject_thread thread = {0};

	assert_int_equal(inject_thread_parse(&thread, "running\n"), -EAGAIN);
	/* The thread is in a page fault, or exits. */
	assert_int_equal(inject_thread_parse(&thread, "-1 0x7ffd12345678 0x7f1122334455\n"),
			 -EAGAIN);
	assert_int_equal(inject_thread_parse(&thread, ""), -EBADMSG);
	assert_int_equal(inject_thread_parse(&thread, "call\n"), -EBADMSG);
	assert_int_equal(inject_thread_parse(&thread, "-2 0x0 0x0\n"), -EBADMSG);
	assert_int_equal(inject_thread_parse(&thread, "0 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd\n"),
			 -EBADMSG);
}

static void the_best_rank_comes_first(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_SLEEP;
	child->tasks[1] = TASK_EPOLL;
	child->tasks[2] = TASK_PAUSE;
	assert_true(start(child));
	assert_order(child, 0, 2, 1);
}

static void of_equal_ones_the_first_thread_comes_last(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_PAUSE;
	child->tasks[1] = TASK_OFTEN;
	child->tasks[2] = TASK_PAUSE;
	assert_true(start(child));
	assert_order(child, 2, 1, 0);
}

static void one_that_runs_or_waits_for_a_lock_is_not_offered(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_SPIN;
	child->tasks[1] = TASK_LOCK;
	child->tasks[2] = TASK_PAUSE;
	assert_true(start(child));
	assert_order(child, 2);
}

static void one_in_the_loader_is_not_offered(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_PAUSE;
	child->tasks[1] = TASK_LOADER;
	if (!start(child))
		skip();
	assert_order(child, 0);
}

static void one_in_the_stub_is_not_offered(void **state)
{
	inject_thread_vec threads = {0};
	struct child *child = *state;
	uint64_t pc;

	child->tasks[0] = TASK_PAUSE;
	assert_true(start(child));
	list(child, &threads);
	assert_int_equal(threads.count, 1);
	pc = threads.items[0].pc;
	vec_free(&threads);
	assert_int_equal(inject_threads_list(&threads, (uint32_t)child->pid, pc - 7, 8), 0);
	assert_int_equal(threads.count, 0);
	assert_int_equal(inject_threads_list(&threads, (uint32_t)child->pid, pc + 1, 8), 0);
	assert_int_equal(threads.count, 1);
	vec_free(&threads);
}

static void one_of_a_real_time_policy_is_not_offered(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_PAUSE;
	child->tasks[1] = TASK_FIFO;
	if (!start(child))
		skip();
	assert_order(child, 0);
}

/* The library's thread would inherit that. */
static void of_equal_ones_those_that_get_less_of_a_cpu_come_last(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_PAUSE;
	child->tasks[1] = TASK_NICE;
	child->tasks[2] = TASK_PAUSE;
	assert_true(start(child));
	assert_order(child, 2, 0, 1);
}

static void one_that_runs_where_a_cpu_is_idle_comes_last(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_PAUSE;
	child->tasks[1] = TASK_IDLE;
	child->tasks[2] = TASK_PAUSE;
	assert_true(start(child));
	assert_order(child, 2, 0, 1);
}

static void what_is_stopped_is_not_offered(void **state)
{
	inject_thread_vec threads = {0};
	struct child *child = *state;
	long nr;

	assert_true(start(child));
	kill(child->pid, SIGSTOP);
	while (look(child->pid, child->tids[0], &nr) != 'T')
		usleep(500);
	list(child, &threads);
	assert_int_equal(threads.count, 0);
	kill(child->pid, SIGCONT);
	while (!is_there(child->pid, child->tids[0], TASK_PAUSE))
		usleep(500);
	list(child, &threads);
	assert_int_equal(threads.count, 1);
	vec_free(&threads);
}

/* Seccomp filters belong to single threads. */
static void one_with_a_filter_is_marked_and_comes_last(void **state)
{
	inject_thread_vec threads = {0};
	struct child *child = *state;

	child->tasks[0] = TASK_PAUSE;
	child->tasks[1] = TASK_FILTERED;
	child->tasks[2] = TASK_EPOLL;
	child->tasks[3] = TASK_FILTERED_SLEEP;
	if (!start(child))
		skip();
	/* The last thread has the best rank, but its filter may kill it when it is stopped. */
	assert_order(child, 0, 1, 2, 3);
	list(child, &threads);
	assert_false(threads.items[0].filtered);
	assert_true(threads.items[1].filtered);
	assert_false(threads.items[2].filtered);
	assert_true(threads.items[3].filtered);
	vec_free(&threads);
}

static void threads_are_offered_when_the_first_one_has_ended(void **state)
{
	struct child *child = *state;

	child->tasks[0] = TASK_EXIT;
	child->tasks[1] = TASK_PAUSE;
	assert_true(start(child));
	assert_order(child, 1);
}

static void a_thread_is_the_same_until_it_goes_on(void **state)
{
	inject_thread_vec threads = {0};
	struct child *child = *state;
	struct inject_thread thread;

	child->tasks[0] = TASK_READ;
	assert_true(start(child));
	list(child, &threads);
	assert_int_equal(threads.count, 1);
	thread = threads.items[0];
	vec_free(&threads);
	assert_true(inject_thread_is_same(&thread, (uint32_t)child->pid));
	thread.args[2]++;
	assert_false(inject_thread_is_same(&thread, (uint32_t)child->pid));
	thread.args[2]--;
	assert_int_equal(write(child->input[1], "b", 1), 1);
	while (!is_there(child->pid, child->tids[0], TASK_PAUSE))
		usleep(500);
	assert_false(inject_thread_is_same(&thread, (uint32_t)child->pid));
}

static void what_has_ended_is_esrch(void **state)
{
	inject_thread_vec threads = {0};
	struct inject_thread thread = {0};
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	thread.tid = (uint32_t)pid;
	assert_int_equal(inject_threads_list(&threads, (uint32_t)pid, 0, 0), -ESRCH);
	assert_false(inject_thread_is_same(&thread, (uint32_t)pid));
	assert_int_equal(threads.count, 0);
}

static void what_may_not_be_looked_at_is_eperm(void **state)
{
	struct child *child = *state;
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	assert_true(start(child));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		inject_thread_vec threads = {0};

		if (setgid(65534) || setuid(65534))
			_exit(1);
		_exit(inject_threads_list(&threads, (uint32_t)child->pid, 0, 0) == -EPERM ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int compare_tids(const void *left, const void *right)
{
	const struct inject_thread *a = left, *b = right;

	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* Each call looks at a limited number of threads, and later calls at others. */
static void of_many_threads_some_are_offered_each_time(void **state)
{
	inject_thread_vec first = {0}, other = {0};
	struct child *child = *state;
	size_t new = 0;

	child->tasks[0] = TASK_SPIN;
	child->many = MANY;
	if (!start(child))
		skip();
	list(child, &first);
	assert_in_range(first.count, 1, INJECT_THREADS_LOOKED);
	qsort(first.items, first.count, sizeof(*first.items), compare_tids);
	while (!new) {
		list(child, &other);
		vec_for_each (thread, &other)
			new += !bsearch(thread, first.items, first.count, sizeof(*first.items),
					compare_tids);
		vec_free(&other);
	}
	vec_free(&first);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_line_is_read_in_full),
		TEST(a_line_that_tells_no_call_is_none),
		TEST(the_best_rank_comes_first),
		TEST(of_equal_ones_the_first_thread_comes_last),
		TEST(one_that_runs_or_waits_for_a_lock_is_not_offered),
		TEST(one_in_the_loader_is_not_offered),
		TEST(one_in_the_stub_is_not_offered),
		TEST(one_of_a_real_time_policy_is_not_offered),
		TEST(of_equal_ones_those_that_get_less_of_a_cpu_come_last),
		TEST(one_that_runs_where_a_cpu_is_idle_comes_last),
		TEST(what_is_stopped_is_not_offered),
		TEST(one_with_a_filter_is_marked_and_comes_last),
		TEST(threads_are_offered_when_the_first_one_has_ended),
		TEST(a_thread_is_the_same_until_it_goes_on),
		TEST(what_has_ended_is_esrch),
		TEST(what_may_not_be_looked_at_is_eperm),
		TEST(of_many_threads_some_are_offered_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void only_x86_is_injected_into(void **state)
{
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(only_x86_is_injected_into)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
