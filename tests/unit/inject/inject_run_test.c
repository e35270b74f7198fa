/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The whole sequence of an injection, with a cat that waits for input as target. The cat must
 * continue to copy whatever happens.
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
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_fixture.h"
#include "inject/inject.h"

#if defined(__x86_64__)

#define PATIENCE_S 120
#define S	   1000000000ull

struct fixture {
	pid_t target;
	int input[2];
	int output[2];
	uint8_t *library;
	struct inject_wish wish;
	unsigned int reached; /* bit per point */
	enum inject_point at; /* the point at which signo is sent */
	int signo;
};

static void path_of(char path[PATH_MAX + 32], const char *name)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(length > 0);
	self[length] = '\0';
	snprintf(path, PATH_MAX + 32, "%s/%s", dirname(self), name);
}

static void note(void *ctx, enum inject_point point)
{
	struct fixture *fixture = ctx;

	fixture->reached |= 1u << point;
	if (fixture->signo && point == fixture->at)
		kill(fixture->target, fixture->signo);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || pipe(fixture->input) || pipe(fixture->output))
		return -1;
	alarm(PATIENCE_S);
	fixture->wish.library = (struct inject_library){"no library", 10, NULL};
	fixture->wish.timeout_ns = PATIENCE_S * S;
	fixture->wish.hook = (struct inject_hook){note, fixture};
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	alarm(0);
	if (fixture->target) {
		kill(fixture->target, SIGKILL);
		waitpid(fixture->target, NULL, 0);
	}
	for (int i = 0; i < 2; i++) {
		close(fixture->input[i]);
		close(fixture->output[i]);
	}
	free(fixture->library);
	free(fixture);
	return 0;
}

static void copies(const struct fixture *fixture, const char *text)
{
	char copy[16] = "";

	assert_int_equal(write(fixture->input[1], text, strlen(text)), strlen(text));
	assert_int_equal(read(fixture->output[0], copy, sizeof(copy) - 1), strlen(text));
	assert_string_equal(copy, text);
}

/* prepare() runs in the child before execve(). */
static void start(struct fixture *fixture, void (*prepare)(void))
{
	fixture->target = child_fork();
	if (!fixture->target) {
		dup2(fixture->input[0], STDIN_FILENO);
		dup2(fixture->output[1], STDOUT_FILENO);
		close(fixture->input[1]);
		if (prepare)
			prepare();
		execlp("cat", "cat", NULL);
		_exit(127);
	}
	fixture->wish.tgid = (uint32_t)fixture->target;
	copies(fixture, "begin");
}

/* On a busy machine either side may have timed out; then the injection is repeated. */
static struct inject_outcome run(struct fixture *fixture)
{
	struct inject_outcome outcome;

	do {
		inject_run(&fixture->wish, &outcome);
	} while (!fixture->signo &&
		 (outcome.status == INJECT_NO_HELPER || strstr(outcome.text, strerror(ETIMEDOUT))));
	if (outcome.status == INJECT_REFUSED && strstr(outcome.text, "CAP_"))
		skip();
	return outcome;
}

/* The double of libcuda does nothing when it is loaded. */
static void choose_library(struct fixture *fixture, const char *entry)
{
	char path[PATH_MAX + 32];
	struct stat status;
	int fd;

	path_of(path, "libcuda.so.1");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		skip();
	assert_int_equal(fstat(fd, &status), 0);
	fixture->library = malloc((size_t)status.st_size);
	assert_int_equal(read(fd, fixture->library, (size_t)status.st_size), status.st_size);
	close(fd);
	fixture->wish.library =
		(struct inject_library){fixture->library, (size_t)status.st_size, entry};
}

static void a_library_is_loaded(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	choose_library(fixture, NULL);
	start(fixture, NULL);
	for (int i = 0; i < 3; i++) {
		outcome = run(fixture);
		assert_int_equal(outcome.status, INJECT_LOADED);
		assert_string_equal(outcome.text, "");
		assert_int_equal(outcome.tid, fixture->target);
		assert_int_equal(outcome.nr, SYS_read);
		assert_true(outcome.tries > 0);
		assert_true(outcome.stop_ns > 0 && outcome.total_ns > outcome.stop_ns);
	}
	copies(fixture, "end");
}

static void every_point_is_reached(void **state)
{
	struct fixture *fixture = *state;

	choose_library(fixture, NULL);
	start(fixture, NULL);
	assert_int_equal(run(fixture).status, INJECT_LOADED);
	assert_int_equal(fixture->reached, (1u << INJECT_POINT_COUNT) - 1);
}

static void what_dlopen_says_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	start(fixture, NULL);
	outcome = run(fixture);
	assert_int_equal(outcome.status, INJECT_FAILED);
	assert_non_null(strstr(outcome.text, "dlopen"));
	assert_non_null(strstr(outcome.text, "too short"));
	copies(fixture, "end");
}

static void an_entry_that_is_not_there_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	choose_library(fixture, "no_such_entry");
	start(fixture, NULL);
	outcome = run(fixture);
	assert_int_equal(outcome.status, INJECT_FAILED);
	assert_non_null(strstr(outcome.text, "dlsym"));
	assert_non_null(strstr(outcome.text, "no_such_entry"));
	copies(fixture, "end");
}

static void forbid_memfd(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void a_filter_that_would_kill_it_is_obeyed(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	start(fixture, forbid_memfd);
	outcome = run(fixture);
	assert_int_equal(outcome.status, INJECT_REFUSED);
	assert_non_null(strstr(outcome.text, "seccomp"));
	assert_non_null(strstr(outcome.text, "memfd_create"));
	assert_non_null(strstr(outcome.text, "kill"));
	assert_false(fixture->reached & 1u << INJECT_AT_DIVERTED);
	copies(fixture, "end");
}

static void another_thread_is_not_taken(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	start(fixture, NULL);
	fixture->wish.tid = (uint32_t)getpid();
	fixture->wish.timeout_ns = S / 20;
	outcome = run(fixture);
	assert_int_equal(outcome.status, INJECT_NO_THREAD);
	assert_int_equal(outcome.tries, 0);
	assert_int_not_equal(outcome.text[0], '\0');
	copies(fixture, "end");
}

static void one_that_is_traced_is_not_taken(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome = {.status = INJECT_REFUSED};
	char said = 'n';
	pid_t tracer;

	start(fixture, NULL);
	tracer = child_fork();
	if (!tracer) {
		said = ptrace(PTRACE_SEIZE, fixture->target, 0, 0) ? 'n' : 'y';
		while (write(fixture->output[1], &said, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fixture->output[0], &said, 1), 1);
	if (said == 'y')
		outcome = run(fixture);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	assert_int_equal(outcome.status, INJECT_REFUSED);
	copies(fixture, "end");
}

static void one_that_dies_is_gone(void **state)
{
	static const enum inject_point points[] = {
		INJECT_AT_CHECKED,	  INJECT_AT_STUB_WRITTEN, INJECT_AT_CHOSEN,
		INJECT_AT_SEIZED,	  INJECT_AT_STOPPED,	  INJECT_AT_STUB_COMPARED,
		INJECT_AT_PENDING_CHECKED};
	struct fixture *fixture = *state;

	fixture->signo = SIGKILL;
	for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++) {
		fixture->at = points[i];
		start(fixture, NULL);
		assert_int_equal(run(fixture).status, INJECT_GONE);
		/*
		 * This process is both tracer and parent of the target, so the tracer may have
		 * reaped it.
		 */
		waitpid(fixture->target, NULL, 0);
		fixture->target = 0;
	}
}

/* The helper starts when the target continues, and gives up by itself. */
static void one_that_is_stopped_goes_on_later(void **state)
{
	struct fixture *fixture = *state;
	struct inject_outcome outcome;

	start(fixture, NULL);
	fixture->signo = SIGSTOP;
	fixture->at = INJECT_AT_DETACHED;
	outcome = run(fixture);
	kill(fixture->target, SIGCONT);
	if (!(fixture->reached & 1u << INJECT_AT_PAGE_FOUND))
		assert_int_equal(outcome.status, INJECT_NO_HELPER);
	copies(fixture, "end");
}

static void preload_cuda(void)
{
	char path[PATH_MAX + 32];

	path_of(path, "libcuda.so.1");
	setenv("LD_PRELOAD", path, 1);
}

static void a_trial_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct inject_verdict verdict = {0};
	bool thread = false;

	choose_library(fixture, NULL);
	start(fixture, preload_cuda);
	assert_int_equal(inject_try((uint32_t)fixture->target, INJECT_FOR_CUDA, &verdict), 0);
	vec_for_each (finding, &verdict.findings.items)
		thread = thread || !strcmp(finding->subject, "thread");
	assert_true(thread);
	findings_free(&verdict.findings);
	copies(fixture, "end");
}

static void a_trial_tells_what_a_run_would(void **state)
{
	struct fixture *fixture = *state;
	struct inject_verdict verdict = {0};
	char text[INJECT_TEXT_MAX];

	start(fixture, NULL);
	assert_int_equal(inject_try((uint32_t)fixture->target, INJECT_FOR_CUDA, &verdict), -EPERM);
	inject_verdict_reason(&verdict, text);
	assert_non_null(strstr(text, "CUDA"));
	findings_free(&verdict.findings);
}

static void preload_cuda_and_forbid_memfd(void)
{
	preload_cuda();
	forbid_memfd();
}

static void a_trial_asks_the_filters(void **state)
{
	struct fixture *fixture = *state;
	struct inject_verdict verdict = {0};
	char text[INJECT_TEXT_MAX];

	choose_library(fixture, NULL);
	start(fixture, preload_cuda_and_forbid_memfd);
	assert_int_equal(inject_try((uint32_t)fixture->target, INJECT_FOR_CUDA, &verdict), -EPERM);
	inject_verdict_reason(&verdict, text);
	assert_non_null(strstr(text, "seccomp"));
	findings_free(&verdict.findings);
	copies(fixture, "end");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_library_is_loaded),
		TEST(every_point_is_reached),
		TEST(what_dlopen_says_is_told),
		TEST(an_entry_that_is_not_there_is_told),
		TEST(a_filter_that_would_kill_it_is_obeyed),
		TEST(another_thread_is_not_taken),
		TEST(one_that_is_traced_is_not_taken),
		TEST(one_that_dies_is_gone),
		TEST(one_that_is_stopped_goes_on_later),
		TEST(a_trial_changes_nothing),
		TEST(a_trial_tells_what_a_run_would),
		TEST(a_trial_asks_the_filters),
	};

	/* The tests run as any user. Where ptrace of a child is not allowed they skip. */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
