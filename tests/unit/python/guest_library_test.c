/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libferrum_python.so in a program that has an interpreter which never begins: how its thread is
 * scheduled, and what it does with orders that wait.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "fbt_python.h"

#ifdef __x86_64__

#define PATIENCE_S 60

struct program {
	pid_t pid;
	int input; /* its end ends the program */
	struct fbt_python_page *page;
};

static const char *built(char path[600], const char *name)
{
	const char *build = getenv("FBT_BUILD");

	snprintf(path, 600, "%s/%s", build ? build : "build/x86_64-gcc", name);
	return path;
}

/* In the child. */
static void become_program(int input, bool is_late)
{
	char program[600], library[600], preload[620];
	char *late[] = {program, library, NULL}, *early[] = {program, NULL};
	char *none[] = {NULL}, *preloads[] = {preload, NULL};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(input, STDIN_FILENO);
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	built(library, "libferrum_python.so");
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library);
	if (is_late)
		setpriority(PRIO_PROCESS, 0, 3);
	built(program, "tests/not_begun");
	execve(program, is_late ? late : early, is_late ? none : preloads);
	_exit(127);
}

/* NULL: the library has not made its page yet. */
static struct fbt_python_page *map_page(pid_t pid)
{
	struct fbt_python_page *page = MAP_FAILED;
	char path[64], link[64];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	while (folder && page == MAP_FAILED && (entry = readdir(folder))) {
		struct stat stat = {0};
		ssize_t length;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/fd/%.20s", (int)pid, entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (strncmp(link, "/memfd:" FBT_PYTHON_MEMFD, strlen("/memfd:" FBT_PYTHON_MEMFD)))
			continue;
		fd = open(path, O_RDWR | O_CLOEXEC);
		/* It has its size a moment later. */
		if (!fstat(fd, &stat) && stat.st_size == FBT_PYTHON_PAGE_BYTES)
			page = mmap(NULL, FBT_PYTHON_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				    fd, 0);
		close(fd);
	}
	if (folder)
		closedir(folder);
	return page == MAP_FAILED ? NULL : page;
}

static int start(void **state, bool is_late)
{
	static struct program program;
	int input[2];

	program = (struct program){0};
	if (pipe2(input, O_CLOEXEC))
		return -1;
	alarm(PATIENCE_S);
	program.pid = fork();
	if (!program.pid)
		become_program(input[0], is_late);
	close(input[0]);
	program.input = input[1];
	*state = &program;
	do {
		if (waitpid(program.pid, NULL, WNOHANG))
			return -1;
		usleep(500);
		program.page = program.page ? program.page : map_page(program.pid);
	} while (!program.page ||
		 __atomic_load_n(&program.page->phase, __ATOMIC_ACQUIRE) != FBT_PYTHON_READY);
	return 0;
}

static int setup(void **state)
{
	return start(state, false);
}

static int setup_late(void **state)
{
	return start(state, true);
}

static int teardown(void **state)
{
	struct program *program = *state;

	munmap(program->page, FBT_PYTHON_PAGE_BYTES);
	close(program->input);
	kill(program->pid, SIGKILL);
	waitpid(program->pid, NULL, 0);
	alarm(0);
	return 0;
}

static uint32_t order_of(const struct program *program)
{
	return __atomic_load_n(&program->page->order, __ATOMIC_ACQUIRE);
}

static void ask(struct program *program, uint32_t number, uint64_t lease_ns)
{
	struct fbt_python_page *page = program->page;

	page->tool = 4711;
	page->command = FBT_PYTHON_RESOLVE;
	__atomic_store_n(&page->lease_ns, lease_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&page->order, FBT_PYTHON_ORDER(number, FBT_PYTHON_ASKED),
			 __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->order, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void an_order_waits_for_the_interpreter_while_its_tool_lives(void **state)
{
	struct program *program = *state;

	ask(program, 1, clock_ns(CLOCK_MONOTONIC) + PATIENCE_S * NS_PER_S);
	while (!program->page->text[0])
		usleep(500);
	usleep(100000);
	assert_int_equal(order_of(program), FBT_PYTHON_ORDER(1, FBT_PYTHON_ASKED));
	assert_int_equal(program->page->lapses, 0);
}

static void an_order_of_a_tool_that_is_gone_is_dropped(void **state)
{
	struct program *program = *state;

	ask(program, 1, clock_ns(CLOCK_MONOTONIC) + 100 * NS_PER_MS);
	while (order_of(program) == FBT_PYTHON_ORDER(1, FBT_PYTHON_ASKED))
		usleep(500);
	assert_int_equal(order_of(program), FBT_PYTHON_ORDER(1, FBT_PYTHON_DONE));
	/* A tool that was only late would take the order for done. */
	assert_int_equal(program->page->lapses, 1);
}

static uint64_t read_slack(pid_t tid)
{
	char path[64], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", (int)tid);
	file = fopen(path, "re");
	if (file && !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	return strtoull(text, NULL, 10);
}

/* The thread of the library; 0: there is none. */
static pid_t find_thread(pid_t pid)
{
	char path[64], name[32];
	struct dirent *entry;
	pid_t found = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", (int)pid, entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) &&
		    !strcmp(name, FBT_PYTHON_THREAD "\n"))
			found = atoi(entry->d_name);
		if (file)
			fclose(file);
	}
	if (folder)
		closedir(folder);
	return found;
}

/* Not as the thread that was diverted: the engine waits for this one while it has the GIL. */
static void its_thread_is_scheduled_as_the_first_one(void **state)
{
	struct program *program = *state;
	pid_t tid = find_thread(program->pid);
	cpu_set_t first, own;

	assert_true(tid > 0);
	if (geteuid())
		skip();
	assert_int_equal(sched_getaffinity(program->pid, sizeof(first), &first), 0);
	assert_int_equal(sched_getaffinity(tid, sizeof(own), &own), 0);
	assert_true(CPU_EQUAL(&first, &own));
	assert_int_equal(sched_getscheduler(tid), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)tid), 4);
	assert_int_equal(read_slack(tid), 50000);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(an_order_waits_for_the_interpreter_while_its_tool_lives),
		CASE(an_order_of_a_tool_that_is_gone_is_dropped),
		cmocka_unit_test_setup_teardown(its_thread_is_scheduled_as_the_first_one,
						setup_late, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void the_library_is_of_x86(void **state)
{
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_library_is_of_x86)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
