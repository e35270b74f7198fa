/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child_fixture.h"
#include "inject/python_use.h"
#include "python/tree.h"

/* 1 is init, 10 a shell, 20 a launcher, 30 the API server, 40 the engine. */
static struct process_entry entries[] = {{1, 0}, {10, 1}, {20, 10}, {30, 20}, {40, 30}, {50, 50}};
static const process_vec processes = {.items = entries,
				      .count = sizeof(entries) / sizeof(entries[0])};

static bool from_20(uint32_t parent, uint32_t child)
{
	return parent >= 20;
}

static bool none(uint32_t parent, uint32_t child)
{
	return false;
}

static bool all(uint32_t parent, uint32_t child)
{
	return true;
}

static void the_top_is_the_last_that_is_the_same(void **state)
{
	assert_int_equal(python_tree_top(&processes, 40, from_20), 20);
	assert_int_equal(python_tree_top(&processes, 20, from_20), 20);
	assert_int_equal(python_tree_top(&processes, 40, none), 40);
	assert_int_equal(python_tree_top(&processes, 40, all), 1);
}

/* The process list is no snapshot, so a pid may have been reused. */
static void a_loop_ends(void **state)
{
	assert_int_equal(python_tree_top(&processes, 50, all), 50);
}

static void a_process_without_python_has_no_tree(void **state)
{
	process_vec others = {0};

	assert_int_equal(python_tree_list((uint32_t)getpid(), &others), 0);
	assert_int_equal(others.count, 0);
	assert_false(python_tree_is_helper((uint32_t)getpid()));
}

/* Runs python3 with arguments until its standard input ends. 0: there is no python3. */
static pid_t start_python(const char *const arguments[], int *input)
{
	int ends[2], ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[0], STDIN_FILENO);
		dup2(ready[1], STDOUT_FILENO);
		close(ends[1]);
		execvp("python3", (char *const *)arguments);
		_exit(127);
	}
	close(ends[0]);
	close(ready[1]);
	*input = ends[1];
	if (read(ready[0], &byte, 1) != 1)
		pid = 0;
	close(ready[0]);
	return pid;
}

static void end_python(pid_t pid, int input)
{
	close(input);
	waitpid(pid, NULL, 0);
}

#define SCRIPT "import sys; print('x', flush=True); sys.stdin.read()"

static void a_tracker_is_a_helper(void **state)
{
	static const char *const tracker[] = {
		"python3", "-c", SCRIPT,
		"from multiprocessing.resource_tracker import main;main(5)", NULL};
	static const char *const other[] = {"python3", "-c", SCRIPT, "serve", NULL};
	int input;
	pid_t pid = start_python(tracker, &input);

	if (!pid)
		skip();
	assert_true(python_tree_is_helper((uint32_t)pid));
	end_python(pid, input);
	pid = start_python(other, &input);
	assert_false(python_tree_is_helper((uint32_t)pid));
	end_python(pid, input);
}

/* A child of a fork server has the server's command line, but is an engine. */
static void a_forked_child_of_a_server_is_none(void **state)
{
	static const char *const server[] = {
		"python3", "-c",
		"import os, sys\n"
		"a, b = os.pipe()\n"
		"child = os.fork()\n"
		"if not child: os.close(b); os.read(a, 1); os._exit(0)\n"
		"os.write(1, str(child).encode() + b'\\n'); sys.stdin.read()\n",
		"from multiprocessing.forkserver import main; main(1, 2)", NULL};
	process_vec others = {0};
	int input;
	pid_t pid = start_python(server, &input);

	if (!pid)
		skip();
	assert_true(python_tree_is_helper((uint32_t)pid));
	assert_int_equal(python_tree_list((uint32_t)pid, &others), 0);
	assert_int_equal(others.count, 1);
	assert_int_equal(others.items[0].parent_tgid, pid);
	assert_false(python_tree_is_helper(others.items[0].tgid));
	vec_free(&others);
	end_python(pid, input);
}

/* Whether that is in the tree of tgid where a server of network files does not answer. */
static int find_without_server(uint32_t tgid, uint32_t wanted)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)AT_FDCWD, 3, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_STATX_DONT_SYNC, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	process_vec members = {0};
	int status = 1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	if (python_tree_members(tgid, &members))
		return 2;
	vec_for_each (member, &members) {
		if (member->tgid == wanted)
			status = 0;
	}
	vec_free(&members);
	return status;
}

static void no_file_system_is_asked_what_programs_are(void **state)
{
	pid_t own = getpid(), child = child_fork(), finder;
	int status;

	if (!child) {
		pause();
		_exit(0);
	}
	finder = fork();
	if (!finder)
		_exit(find_without_server((uint32_t)child, (uint32_t)own));
	assert_int_equal(waitpid(finder, &status, 0), finder);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_title_is_longer_than_a_name(void **state)
{
	char title[PYTHON_TITLE_MAX], name[17];

	prctl(PR_GET_NAME, name);
	python_tree_title((uint32_t)getpid(), title);
	assert_string_equal(title, name);
	python_tree_title(0x7ffffffe, title);
	assert_string_equal(title, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_top_is_the_last_that_is_the_same),
		cmocka_unit_test(a_loop_ends),
		cmocka_unit_test(a_process_without_python_has_no_tree),
		cmocka_unit_test(a_tracker_is_a_helper),
		cmocka_unit_test(a_forked_child_of_a_server_is_none),
		cmocka_unit_test(no_file_system_is_asked_what_programs_are),
		cmocka_unit_test(a_title_is_longer_than_a_name),
	};

	return cmocka_run_group_tests_name("python/tree", tests, NULL, NULL);
}
