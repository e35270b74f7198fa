/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "trace/command.h"
#include "stderr_fixture.h"

/* main() ignores SIGPIPE too, so that a child that has ended shows as an error of write(). */
static int setup(void **state)
{
	signal(SIGPIPE, SIG_IGN);
	return stderr_setup(state);
}

static struct child *start(const char *program, const char *argument)
{
	char *command[] = {(char *)program, (char *)argument, NULL};
	struct child *child;

	assert_int_equal(child__start(&child, command, NULL), 0);
	return child;
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

static void free_accepts_null(void **state)
{
	child__free(NULL);
}

static void start_without_descriptors_is_emfile(void **state)
{
	char *command[] = {(char *)"true", NULL};
	struct rlimit before, none;
	struct child *child = (struct child *)"?";
	int err;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	err = child__start(&child, command, NULL);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(err, -EMFILE);
	assert_null(child);
	assert_one_line(*state, "true: ");
}

static void release_gives_the_errno_of_a_program_that_is_not_there(void **state)
{
	struct child *child = start("/no/such/program", NULL);
	pid_t pid = child__pid(child);

	assert_int_equal(child__release(child), -ENOENT);
	assert_int_equal(child__status(child), 127);
	assert_one_line(*state, "/no/such/program: No such file");
	child__free(child);
	waitpid(pid, NULL, 0);
}

static void release_gives_the_errno_of_a_file_that_is_no_program(void **state)
{
	struct child *child = start("/dev/null", NULL);
	pid_t pid = child__pid(child);

	assert_int_equal(child__release(child), -EACCES);
	assert_int_equal(child__status(child), 126);
	assert_one_line(*state, "/dev/null: Permission denied");
	child__free(child);
	waitpid(pid, NULL, 0);
}

static void release_of_a_child_that_was_killed_is_epipe(void **state)
{
	struct child *child = start("true", NULL);
	pid_t pid = child__pid(child);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(child__release(child), -EPIPE);
	assert_one_line(*state, "true: Broken pipe");
	child__free(child);
}

static void a_child_that_is_not_released_never_runs_the_program(void **state)
{
	char path[] = "/tmp/fbt_child_XXXXXX";
	struct child *child;

	assert_non_null(mkdtemp(path));
	child = start("rmdir", path);
	usleep(50000);
	child__free(child);
	assert_int_equal(access(path, F_OK), 0);
	rmdir(path);
}

static void free_leaves_no_child_that_was_not_released(void **state)
{
	struct child *child = start("sleep", "600");
	pid_t pid = child__pid(child);

	assert_int_equal(kill(pid, 0), 0);
	child__free(child);
	assert_true(is_gone(pid));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_silent(*state);
}

static void a_released_child_is_the_program(void **state)
{
	char *command[] = {(char *)"sh", (char *)"-c", (char *)"exit 42", NULL};
	struct child *child;
	int status;
	pid_t pid;

	assert_int_equal(child__start(&child, command, NULL), 0);
	pid = child__pid(child);
	assert_int_equal(child__release(child), 0);
	child__free(child);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_silent(*state);
}

static void the_status_of_a_child_that_still_runs_is_0_and_a_line_names_it(void **state)
{
	struct child *child = start("sleep", "600");
	pid_t pid = child__pid(child);
	char line[64];

	assert_int_equal(child__release(child), 0);
	assert_int_equal(child__status(child), 0);
	snprintf(line, sizeof(line), "sleep: still running as process %d", (int)pid);
	assert_one_line(*state, line);
	child__free(child);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The exit status of a shell that compares the variable with expected. */
static int injection_is(const char *injection, const char *expected)
{
	char script[128];
	char *command[] = {(char *)"sh", (char *)"-c", script, NULL};
	struct child *child;
	int status;
	pid_t pid;

	snprintf(script, sizeof(script), "test \"${" CHILD_INJECTION "-unset}\" = '%s'", expected);
	assert_int_equal(child__start(&child, command, injection), 0);
	pid = child__pid(child);
	assert_int_equal(child__release(child), 0);
	child__free(child);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void the_injection_is_set_unless_it_is_set_already(void **state)
{
	unsetenv(CHILD_INJECTION);
	assert_int_equal(injection_is("/opt/shim.so", "/opt/shim.so"), 0);
	assert_int_equal(injection_is(NULL, "unset"), 0);
	/* The tool's own environment is unchanged. */
	assert_null(getenv(CHILD_INJECTION));
	setenv(CHILD_INJECTION, "/other.so", 1);
	assert_int_equal(injection_is("/opt/shim.so", "/other.so"), 0);
	setenv(CHILD_INJECTION, "", 1);
	assert_int_equal(injection_is("/opt/shim.so", ""), 0);
	unsetenv(CHILD_INJECTION);
}

/* The reported status of sh after it has run this script. */
static int status_of(const char *script)
{
	char *command[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
	struct child *child;
	siginfo_t ended;
	int status;

	assert_int_equal(child__start(&child, command, NULL), 0);
	assert_int_equal(child__release(child), 0);
	assert_int_equal(waitid(P_PID, (id_t)child__pid(child), &ended, WEXITED | WNOWAIT), 0);
	child__report(child);
	status = child__status(child);
	child__free(child);
	return status;
}

static void status_is_that_of_the_program_as_a_shell_has_it(void **state)
{
	(void)state;
	assert_int_equal(status_of("exit 0"), 0);
	assert_int_equal(status_of("exit 7"), 7);
	assert_int_equal(status_of("exit 255"), 255);
	assert_int_equal(status_of("kill -TERM $$"), 128 + SIGTERM);
	assert_int_equal(status_of("kill -KILL $$"), 128 + SIGKILL);
}

static void status_of_what_runs_is_0(void **state)
{
	struct child *child = start("sleep", "600");
	pid_t pid = child__pid(child);

	(void)state;
	assert_int_equal(child__release(child), 0);
	assert_int_equal(child__status(child), 0);
	kill(pid, SIGKILL);
	child__free(child);
	waitpid(pid, NULL, 0);
}

static void a_released_child_outlives_its_handle(void **state)
{
	struct child *child = start("sleep", "600");
	pid_t pid = child__pid(child);
	int status;

	assert_int_equal(child__release(child), 0);
	child__free(child);
	usleep(20000);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* The value of one field of /proc/PID/status, in hexadecimal. */
static unsigned long long read_status(pid_t pid, const char *field)
{
	unsigned long long value = ~0ull;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, field, strlen(field)))
			value = strtoull(line + strlen(field) + 1, NULL, 16);
	}
	fclose(file);
	return value;
}

static void the_program_has_none_of_our_blocked_signals(void **state)
{
	sigset_t blocked, before;
	unsigned long long mask;
	struct child *child;
	pid_t pid;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	child = start("sleep", "600");
	assert_int_equal(child__release(child), 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	pid = child__pid(child);
	mask = read_status(pid, "SigBlk");
	child__free(child);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(mask, 0);
}

static void the_program_takes_sigpipe_as_it_comes(void **state)
{
	struct child *child = start("sleep", "600");
	pid_t pid = child__pid(child);
	unsigned long long ignored;

	assert_int_equal(child__release(child), 0);
	ignored = read_status(pid, "SigIgn");
	child__free(child);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(ignored & (1ull << (SIGPIPE - 1)), 0);
}

/* Number of descriptors of a process that are pipes. */
static int count_pipes(pid_t pid)
{
	char path[64], link[64];
	int count = 0;

	for (int fd = 0; fd < 64; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		length = readlink(path, link, sizeof(link) - 1);
		count += length > 5 && !strncmp(link, "pipe:", 5);
	}
	return count;
}

static void the_program_gets_no_pipes_of_ours(void **state)
{
	int before = count_pipes(getpid()), pipes;
	struct child *child = start("sleep", "600");
	pid_t pid = child__pid(child);

	assert_int_equal(child__release(child), 0);
	pipes = count_pipes(pid);
	child__free(child);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(pipes <= before);
}

static void the_handle_keeps_no_descriptors(void **state)
{
	int before = count_pipes(getpid());
	struct child *child = start("sleep", "600");
	pid_t pid = child__pid(child);

	assert_int_equal(child__release(child), 0);
	child__free(child);
	child__free(start("true", NULL));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(count_pipes(getpid()), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(start_without_descriptors_is_emfile),
		TEST(release_gives_the_errno_of_a_program_that_is_not_there),
		TEST(release_gives_the_errno_of_a_file_that_is_no_program),
		TEST(release_of_a_child_that_was_killed_is_epipe),
		TEST(a_child_that_is_not_released_never_runs_the_program),
		TEST(free_leaves_no_child_that_was_not_released),
		TEST(a_released_child_is_the_program),
		TEST(the_status_of_a_child_that_still_runs_is_0_and_a_line_names_it),
		TEST(the_injection_is_set_unless_it_is_set_already),
		TEST(status_is_that_of_the_program_as_a_shell_has_it),
		TEST(status_of_what_runs_is_0),
		TEST(a_released_child_outlives_its_handle),
		TEST(the_program_has_none_of_our_blocked_signals),
		TEST(the_program_takes_sigpipe_as_it_comes),
		TEST(the_program_gets_no_pipes_of_ours),
		TEST(the_handle_keeps_no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
