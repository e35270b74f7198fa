/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "living.h"
#include "log.h"
#include "processes.h"
#include "stderr_fixture.h"

struct fixture {
	struct stderr_fixture *errors;
	struct living *living;
	pid_vec pids;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	log_set_level(LOG_INFO);
	*state = fixture;
	return fixture ? stderr_setup((void **)&fixture->errors) : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	living__free(fixture->living);
	vec_for_each (pid, &fixture->pids) {
		kill((pid_t)*pid, SIGKILL);
		waitpid((pid_t)*pid, NULL, 0);
	}
	vec_free(&fixture->pids);
	stderr_teardown((void **)&fixture->errors);
	free(fixture);
	return 0;
}

static pid_t add_sleeper(struct fixture *fixture)
{
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(vec_push(&fixture->pids, (uint32_t)pid), 0);
	return pid;
}

/* It is a zombie from then on. */
static void end_sleeper(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void watch(struct fixture *fixture)
{
	assert_int_equal(living__new(&fixture->living, &fixture->pids), 0);
}

static void free_accepts_null(void **state)
{
	living__free(NULL);
}

static void those_that_live_stay(void **state)
{
	struct fixture *fixture = *state;
	pid_t first = add_sleeper(fixture);

	add_sleeper(fixture);
	watch(fixture);
	assert_int_equal(living__look(fixture->living), 2);
	assert_int_equal(living__pids(fixture->living)->items[0], first);
	assert_silent(fixture->errors);
}

static void those_that_ended_go_with_a_word(void **state)
{
	struct fixture *fixture = *state;
	pid_t first = add_sleeper(fixture), second = add_sleeper(fixture);
	pid_t third = add_sleeper(fixture);

	watch(fixture);
	end_sleeper(second);
	assert_int_equal(living__look(fixture->living), 2);
	assert_int_equal(living__pids(fixture->living)->items[0], first);
	assert_int_equal(living__pids(fixture->living)->items[1], third);
	assert_int_equal(living__look(fixture->living), 2);
	assert_one_line(fixture->errors, "has ended");
}

static void of_the_last_one_the_caller_speaks(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid = add_sleeper(fixture);

	watch(fixture);
	end_sleeper(pid);
	assert_int_equal(living__look(fixture->living), 0);
	assert_silent(fixture->errors);
}

static void one_that_does_not_exist_is_refused(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid = add_sleeper(fixture);

	end_sleeper(pid);
	waitpid(pid, NULL, 0);
	assert_int_equal(living__new(&fixture->living, &fixture->pids), -ESRCH);
	assert_null(fixture->living);
	assert_one_line(fixture->errors, "no such process");
}

static void without_descriptors_its_number_is_asked(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid = add_sleeper(fixture);
	struct rlimit old, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){0, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	watch(fixture);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(living__look(fixture->living), 1);
	end_sleeper(pid);
	waitpid(pid, NULL, 0);
	assert_int_equal(living__look(fixture->living), 0);
	assert_silent(fixture->errors);
}

static void *wait_forever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* The first thread of an engine may end before the others. */
static void one_whose_first_thread_ended_lives(void **state)
{
	struct fixture *fixture = *state;
	struct thread_stat stat = {0};
	pthread_t thread;
	pid_t pid = fork();

	if (!pid) {
		pthread_create(&thread, NULL, wait_forever, NULL);
		syscall(SYS_exit, 0);
	}
	assert_int_equal(vec_push(&fixture->pids, (uint32_t)pid), 0);
	while (!thread_stat_read(&stat, (uint32_t)pid, (uint32_t)pid) && stat.state != 'Z')
		usleep(1000);
	watch(fixture);
	assert_int_equal(living__look(fixture->living), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(those_that_live_stay),
		TEST(those_that_ended_go_with_a_word),
		TEST(of_the_last_one_the_caller_speaks),
		TEST(one_that_does_not_exist_is_refused),
		TEST(without_descriptors_its_number_is_asked),
		TEST(one_whose_first_thread_ended_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
