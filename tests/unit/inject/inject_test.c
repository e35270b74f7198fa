/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The injecting child as the tool sees it. Its targets have the double of libcuda but wait in a
 * call that cannot be interrupted safely, so the child keeps looking for a thread.
 * tests/live/inject.sh tests what an injection does to its target.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child_fixture.h"
#include "inject/inject.h"
#include "sandbox/broker.h"
#include "stderr_fixture.h"

#define PATIENCE_S 120
#define MS	   1000000ull
#define LONG_NS	   (1000ull * 1000 * MS)
/* A descriptor that the tool has open. */
#define TOOLS_FD 57

struct fixture {
	pid_t target;
	char folder[64];
	char fifo[96];
	struct inject *inject;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	alarm(PATIENCE_S);
	strcpy(fixture->folder, "/tmp/inject_test.XXXXXX");
	if (!mkdtemp(fixture->folder))
		return -1;
	snprintf(fixture->fifo, sizeof(fixture->fifo), "%s/fifo", fixture->folder);
	*state = fixture;
	return mkfifo(fixture->fifo, 0600);
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	alarm(0);
	if (fixture->target) {
		kill(fixture->target, SIGKILL);
		waitpid(fixture->target, NULL, 0);
	}
	inject__free(fixture->inject);
	unlink(fixture->fifo);
	rmdir(fixture->folder);
	free(fixture);
	return 0;
}

static void path_of(char path[PATH_MAX + 32], const char *name)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(length > 0);
	self[length] = '\0';
	snprintf(path, PATH_MAX + 32, "%s/%s", dirname(self), name);
}

static bool reads_line(pid_t pid, const char *file, const char *part)
{
	char path[64], line[512];
	bool found = false;
	FILE *text;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	text = fopen(path, "re");
	while (text && !found && fgets(line, sizeof(line), text))
		found = strstr(line, part);
	if (text)
		fclose(text);
	return found;
}

/* `cat FIFO` waits in open(), which no injection interrupts. */
static void start_target(struct fixture *fixture, bool with_cuda)
{
	char cuda[PATH_MAX + 32], opening[32];

	snprintf(opening, sizeof(opening), "%d 0xffffff9c", SYS_openat);
	path_of(cuda, "libcuda.so.1");
	if (with_cuda && access(cuda, R_OK))
		skip();
	fixture->target = child_fork();
	if (!fixture->target) {
		if (with_cuda)
			setenv("LD_PRELOAD", cuda, 1);
		execlp("cat", "cat", fixture->fifo, NULL);
		_exit(127);
	}
	while (!reads_line(fixture->target, "syscall", opening))
		usleep(1000);
}

static int start(struct fixture *fixture, uint32_t tgid, uint64_t timeout_ns)
{
	char library[PATH_MAX + 32];
	struct inject_load load;

	path_of(library, "unit_inject");
	load = inject_load_shim(library);
	return inject__start(&fixture->inject, tgid, &load, timeout_ns);
}

static void await(struct fixture *fixture, struct inject_outcome *outcome)
{
	while (!inject__poll(fixture->inject, now_ns(), outcome))
		usleep(1000);
}

/* The child of this process that is not the target. */
static pid_t injecting(const struct fixture *fixture)
{
	int first = 0, second = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "re");
	if (!file)
		skip();
	if (fscanf(file, "%d %d", &first, &second) < 1)
		first = 0;
	fclose(file);
	return first == fixture->target ? second : first;
}

static void free_accepts_null(void **state)
{
	(void)state;
	inject__free(NULL);
}

static void a_shim_that_is_not_there_is_said(void **state)
{
	const struct inject_load load = inject_load_shim("/no/such/shim");
	struct inject *inject;

	assert_int_equal(inject__start(&inject, 1, &load, MS), -ENOENT);
	assert_null(inject);
	assert_one_line(*state, "/no/such/shim: No such file");
}

static void a_shim_that_is_no_file_is_said(void **state)
{
	const struct inject_load load = inject_load_shim("/dev/zero");
	struct inject *inject;

	assert_int_equal(inject__start(&inject, 1, &load, MS), -ENOEXEC);
	assert_null(inject);
	assert_one_line(*state, "/dev/zero: ");
}

static void a_process_without_cuda_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	start_target(fixture, false);
	assert_int_equal(start(fixture, (uint32_t)fixture->target, MS), 0);
	await(fixture, &outcome);
	assert_int_equal(outcome.status, INJECT_REFUSED);
	assert_int_not_equal(outcome.text[0], '\0');
	assert_int_equal(outcome.tries, 0);
	assert_int_equal(injecting(fixture), 0);
	/* Further polls return the same outcome. */
	memset(&outcome, 0, sizeof(outcome));
	assert_true(inject__poll(fixture->inject, now_ns(), &outcome));
	assert_int_equal(outcome.status, INJECT_REFUSED);
}

static void a_process_that_is_gone_is_said(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	assert_int_equal(start(fixture, 0x7fffffff, MS), 0);
	await(fixture, &outcome);
	assert_int_equal(outcome.status, INJECT_GONE);
	assert_int_not_equal(outcome.text[0], '\0');
}

static void without_a_thread_it_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;
	uint64_t begin_ns = now_ns();

	start_target(fixture, true);
	assert_int_equal(start(fixture, (uint32_t)fixture->target, 50 * MS), 0);
	await(fixture, &outcome);
	assert_int_equal(outcome.status, INJECT_NO_THREAD);
	assert_int_equal(outcome.tid, 0);
	assert_true(now_ns() - begin_ns >= 50 * MS);
	assert_true(reads_line(fixture->target, "status", "TracerPid:\t0"));
}

static void free_waits_for_it(void **state)
{
	struct fixture *fixture = *state;

	start_target(fixture, true);
	assert_int_equal(start(fixture, (uint32_t)fixture->target, 50 * MS), 0);
	inject__free(fixture->inject);
	fixture->inject = NULL;
	assert_int_equal(injecting(fixture), 0);
}

static void one_that_is_killed_has_failed(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	start_target(fixture, true);
	assert_int_equal(start(fixture, (uint32_t)fixture->target, LONG_NS), 0);
	assert_false(inject__poll(fixture->inject, now_ns(), &outcome));
	kill(injecting(fixture), SIGKILL);
	await(fixture, &outcome);
	assert_int_equal(outcome.status, INJECT_FAILED);
	assert_non_null(strstr(outcome.text, "signal 9"));
	assert_int_equal(injecting(fixture), 0);
}

static void one_that_takes_too_long_is_ended(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;
	uint64_t start_ns = now_ns();

	start_target(fixture, true);
	assert_int_equal(start(fixture, (uint32_t)fixture->target, LONG_NS), 0);
	kill(injecting(fixture), SIGSTOP);
	assert_false(inject__poll(fixture->inject, start_ns + LONG_NS, &outcome));
	assert_true(inject__poll(fixture->inject, now_ns() + LONG_NS + 10000 * MS, &outcome));
	assert_int_equal(outcome.status, INJECT_FAILED);
	assert_int_equal(injecting(fixture), 0);
}

/* The broker kills only what it has started itself. */
static void so_is_one_that_the_broker_does_not_know(void **state)
{
	const struct broker_task tasks[BROKER_WORKS] = {0};
	struct fixture *fixture = *state;
	struct inject_outcome outcome;
	bool ended, killed;
	pid_t child;

	start_target(fixture, true);
	assert_int_equal(start(fixture, (uint32_t)fixture->target, LONG_NS), 0);
	child = injecting(fixture);
	kill(child, SIGSTOP);
	assert_int_equal(broker_start(tasks, NULL, NULL), 0);
	ended = inject__poll(fixture->inject, now_ns() + LONG_NS + 10000 * MS, &outcome);
	broker_stop();
	killed = kill(child, SIGKILL) && errno == ESRCH;
	assert_true(ended);
	assert_true(killed);
	assert_int_equal(outcome.status, INJECT_FAILED);
}

/* Ctrl-C and Ctrl-Z reach the tool's process group. The injecting child must not be in it. */
static void it_has_nothing_of_the_tool(void **state)
{
	struct fixture *fixture = *state;
	char path[64], link[PATH_MAX] = "";
	pid_t child;

	assert_int_equal(dup2(STDERR_FILENO, TOOLS_FD), TOOLS_FD);
	start_target(fixture, true);
	assert_int_equal(start(fixture, (uint32_t)fixture->target, LONG_NS), 0);
	close(TOOLS_FD);
	child = injecting(fixture);
	/* Closing the tool's descriptors is the last thing that the child does before it begins. */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", child, TOOLS_FD);
	while (!access(path, F_OK) || !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
		usleep(1000);
	assert_int_equal(getsid(child), child);
	assert_true(reads_line(child, "status", "SigBlk:\tfffffffe7ffbfeff") ||
		    reads_line(child, "status", "SigBlk:\tfffffffffffbfeff"));
	assert_true(reads_line(child, "comm", "ferrum-inject"));
	snprintf(path, sizeof(path), "/proc/%d/fd/2", child);
	assert_true(readlink(path, link, sizeof(link) - 1) > 0);
	assert_string_equal(link, "/dev/null");
	kill(child, SIGKILL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SAYS(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_accepts_null),
		SAYS(a_shim_that_is_not_there_is_said),
		SAYS(a_shim_that_is_no_file_is_said),
		TEST(a_process_without_cuda_is_refused),
		TEST(a_process_that_is_gone_is_said),
		TEST(without_a_thread_it_is_given_up),
		TEST(free_waits_for_it),
		TEST(one_that_is_killed_has_failed),
		TEST(one_that_takes_too_long_is_ended),
		TEST(so_is_one_that_the_broker_does_not_know),
		TEST(it_has_nothing_of_the_tool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
