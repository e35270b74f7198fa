/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which threads of a process are offered, and in which order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/thread.h"
#include "../fake/seccomp_filters.h"

#if defined(__x86_64__)

#define PATIENCE_S  120
#define MANY	    (INJECT_THREADS_LOOKED + 300)
#define TASKS	    8
#define STACK_BYTES 65536
#define PAUSES	    20

/* What a thread of the child does or waits in. */
enum task {
	TASK_NONE,
	TASK_PAUSE, /* INJECT_RANK_RESTART */
	TASK_SLEEP, /* INJECT_RANK_BLOCK */
	TASK_EPOLL, /* INJECT_RANK_EINTR */
	TASK_SPIN,
	TASK_LOCK,
	TASK_OFTEN,  /* as TASK_PAUSE, after several sleeps */
	TASK_LOADER, /* as TASK_PAUSE, by a syscall instruction of ld.so */
	TASK_FIFO,   /* as TASK_PAUSE, with a real-time policy */
	TASK_FILTERED,
	TASK_FILTERED_SLEEP,
	TASK_READ,
	TASK_EXIT, /* the thread ends; only for the first thread */
};

struct child {
	pid_t pid;
	bool cannot;
	int input[2];
	uint32_t tids[TASKS];
	enum task tasks[TASKS]; /* the first entry is the first thread's */
	size_t many;		/* number of further threads, all with TASK_PAUSE */
	size_t many_there;
};

static int setup(void **state)
{
	struct child *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (child == MAP_FAILED || pipe(child->input))
		return -1;
	alarm(PATIENCE_S);
	*state = child;
	return 0;
}

static int teardown(void **state)
{
	struct child *child = *state;

	alarm(0);
	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
	}
	close(child->input[0]);
	close(child->input[1]);
	munmap(child, sizeof(*child));
	return 0;
}

/* --- the child ------------------------------------------------------------------------------- */

/* Finds a syscall instruction in ld.so. */
static int find_gate(struct dl_phdr_info *info, size_t size, void *gate)
{
	if (info->dlpi_addr != getauxval(AT_BASE))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *code = (const char *)info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			*(const void **)gate = memmem(code, segment->p_filesz, "\x0f\x05", 2);
	}
	return 1;
}

static void pause_in_loader(struct child *child)
{
	const void *gate = NULL;
	long nr = SYS_pause;

	dl_iterate_phdr(find_gate, (void *)&gate);
	if (!gate) {
		child->cannot = true;
		return;
	}
	/* The jump does not return. */
	__asm__ volatile("jmp *%1" : : "a"(nr), "r"(gate) : "rcx", "r11", "memory");
}

static void turn_real_time(struct child *child)
{
	struct sched_param param = {.sched_priority = 1};

	child->cannot |= sched_setscheduler(0, SCHED_FIFO, &param) != 0;
}

static void put_filter_on(struct child *child)
{
	struct filter filter;

	filter_docker(&filter);
	child->cannot |= filter_install(&filter) != 0;
}

static void be_task(struct child *child, enum task task)
{
	static const struct timespec time = {1000, 0}, moment = {0, 1000};
	static uint32_t lock = 2;
	struct epoll_event event;
	char byte;

	switch (task) {
	case TASK_SLEEP:
		syscall(SYS_nanosleep, &time, NULL);
		break;
	case TASK_EPOLL:
		syscall(SYS_epoll_wait, epoll_create1(0), &event, 1, -1);
		break;
	case TASK_SPIN:
		for (;;)
			__asm__ volatile("pause");
		break;
	case TASK_LOCK:
		syscall(SYS_futex, &lock, 128, 2, NULL, NULL, 0);
		break;
	case TASK_OFTEN:
		for (int i = 0; i < PAUSES; i++)
			nanosleep(&moment, NULL);
		break;
	case TASK_LOADER:
		pause_in_loader(child);
		break;
	case TASK_FIFO:
		turn_real_time(child);
		break;
	case TASK_FILTERED:
		put_filter_on(child);
		break;
	case TASK_FILTERED_SLEEP:
		put_filter_on(child);
		syscall(SYS_nanosleep, &time, NULL);
		break;
	case TASK_READ:
		syscall(SYS_read, child->input[0], &byte, 1);
		break;
	case TASK_EXIT:
		pthread_exit(NULL);
	default:
		break;
	}
	for (;;)
		syscall(SYS_pause);
}

struct start {
	struct child *child;
	size_t index;
};

static void *run_task(void *arg)
{
	struct start *start = arg;
	struct child *child = start->child;

	__atomic_store_n(&child->tids[start->index], (uint32_t)gettid(), __ATOMIC_RELEASE);
	be_task(child, child->tasks[start->index]);
	return NULL;
}

static void *run_many(void *arg)
{
	struct child *child = arg;

	__atomic_fetch_add(&child->many_there, 1, __ATOMIC_RELEASE);
	be_task(child, TASK_PAUSE);
	return NULL;
}

static void be_child(struct child *child)
{
	static struct start starts[TASKS];
	pthread_attr_t attributes;
	pthread_t id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (size_t i = 1; i < TASKS && child->tasks[i]; i++) {
		starts[i] = (struct start){child, i};
		child->cannot |= pthread_create(&id, NULL, run_task, &starts[i]) != 0;
	}
	for (size_t i = 0; i < child->many; i++)
		child->cannot |= pthread_create(&id, &attributes, run_many, child) != 0;
	starts[0] = (struct start){child, 0};
	run_task(&starts[0]);
	_exit(0);
}

/* --- seen from outside ----------------------------------------------------------------------- */

/* The thread's state, and the number of the call that it waits in; -1: it is in no call. */
static char look(pid_t pid, uint32_t tid, long *nr)
{
	char path[64], line[1024], state = '?';
	FILE *file;

	*nr = -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%u/syscall", pid, tid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file) && line[0] != 'r')
		*nr = strtol(line, NULL, 10);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", pid, tid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file) && strrchr(line, ')'))
		state = strrchr(line, ')')[2];
	if (file)
		fclose(file);
	return state;
}

static bool is_there(pid_t pid, uint32_t tid, enum task task)
{
	long nr;
	char state = look(pid, tid, &nr);

	switch (task) {
	case TASK_SPIN:
		return state == 'R';
	case TASK_EXIT:
		return state == 'Z';
	case TASK_SLEEP:
	case TASK_FILTERED_SLEEP:
		return state == 'S' && nr == SYS_nanosleep;
	case TASK_EPOLL:
		return state == 'S' && nr == SYS_epoll_wait;
	case TASK_LOCK:
		return state == 'S' && nr == SYS_futex;
	case TASK_READ:
		return state == 'S' && nr == SYS_read;
	default:
		return state == 'S' && nr == SYS_pause;
	}
}

/*
 * Starts the child with its tasks. Some of the many threads may not wait yet. false: a task is not
 * possible here.
 */
static bool start(struct child *child)
{
	pid_t pid = fork(); /* the child sees the same struct */

	assert_true(pid >= 0);
	if (!pid)
		be_child(child);
	child->pid = pid;
	for (size_t i = 0; i < TASKS && (!i || child->tasks[i]); i++) {
		while (!__atomic_load_n(&child->tids[i], __ATOMIC_ACQUIRE) ||
		       (!child->cannot && !is_there(child->pid, child->tids[i], child->tasks[i])))
			usleep(500);
	}
	while (!child->cannot &&
	       __atomic_load_n(&child->many_there, __ATOMIC_ACQUIRE) < child->many)
		usleep(500);
	return !child->cannot;
}

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
