/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "shim/peers.h"
#include "inject/inject.h"
#include "base/log.h"
#include "stderr_fixture.h"

#define S 1000000000ull

/* A double of inject.c: an injection ends when the test says so. */
struct inject {
	uint32_t tgid;
};

static struct {
	struct inject running;
	bool is_running;
	uint32_t started;
	int start_err;
	bool over;
	struct inject_outcome outcome;
	char shim[64];
	uint64_t timeout_ns;
} double_of;

int inject__start(struct inject **inject, uint32_t tgid, const struct inject_load *load,
		  uint64_t timeout_ns)
{
	assert_false(double_of.is_running);
	snprintf(double_of.shim, sizeof(double_of.shim), "%s", load->path);
	double_of.timeout_ns = timeout_ns;
	if (double_of.start_err)
		return double_of.start_err;
	double_of.started++;
	double_of.is_running = true;
	double_of.over = false;
	double_of.running.tgid = tgid;
	*inject = &double_of.running;
	return 0;
}

bool inject__poll(struct inject *inject, uint64_t now_ns, struct inject_outcome *outcome)
{
	(void)now_ns;
	assert_ptr_equal(inject, &double_of.running);
	assert_true(double_of.is_running);
	if (double_of.over)
		*outcome = double_of.outcome;
	return double_of.over;
}

void inject__await(struct inject *inject, struct inject_outcome *outcome)
{
	assert_ptr_equal(inject, &double_of.running);
	assert_true(double_of.is_running);
	double_of.over = true;
	*outcome = double_of.outcome;
}

void inject__free(struct inject *inject)
{
	if (inject)
		double_of.is_running = false;
}

struct fixture {
	struct stderr_fixture *text;
	struct gpu_inject *inject;
	struct gpu_injected injected;
	uint32_t own; /* this process, which is older than two seconds */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	log_set_level(LOG_WARN);
	memset(&double_of, 0, sizeof(double_of));
	if (!fixture || stderr_setup((void **)&fixture->text))
		return -1;
	fixture->inject = gpu_inject__new(strdup("/lib/shim.so"), 7 * S);
	fixture->own = 1;
	*state = fixture;
	return fixture->inject ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	void *text = fixture->text;

	gpu_inject__free(fixture->inject);
	assert_false(double_of.is_running);
	free(fixture);
	return stderr_teardown(&text);
}

static bool turn(struct fixture *fixture, uint64_t now_ns)
{
	return gpu_inject__poll(fixture->inject, now_ns, &fixture->injected);
}

static void end(enum inject_status status, const char *text)
{
	double_of.over = true;
	double_of.outcome = (struct inject_outcome){.status = status};
	snprintf(double_of.outcome.text, sizeof(double_of.outcome.text), "%s", text);
}

/* The reason that is reported if the injection ends with this status and text. */
static const char *why(struct fixture *fixture, enum inject_status status, const char *text)
{
	gpu_inject__want(fixture->inject, fixture->own, S, true);
	assert_false(turn(fixture, S));
	end(status, text);
	assert_true(turn(fixture, S));
	assert_int_equal(fixture->injected.tgid, fixture->own);
	assert_false(fixture->injected.loaded);
	gpu_inject__forget(fixture->inject, fixture->own);
	return fixture->injected.why;
}

static void free_accepts_null(void **state)
{
	(void)state;
	gpu_inject__free(NULL);
}

static void without_a_shim_there_is_nothing_to_inject(void **state)
{
	const struct record_output nowhere = {0};
	struct fixture *fixture = *state;
	struct gpu_link *link;

	/* There is no shim library beside this test program. */
	assert_int_equal(gpu_link__open(&link, GPU_INJECT, S, &nowhere), -ENOENT);
	assert_null(link);
	assert_one_line(fixture->text, "--gpu inject: libferrum_cupti.so");
}

static void one_that_had_libcuda_from_the_start_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;

	assert_false(turn(fixture, S));
	gpu_inject__want(fixture->inject, fixture->own, S, true);
	assert_false(turn(fixture, S));
	assert_int_equal(double_of.started, 1);
	assert_int_equal(double_of.running.tgid, fixture->own);
	assert_string_equal(double_of.shim, "/lib/shim.so");
	assert_int_equal(double_of.timeout_ns, 7 * S);
	end(INJECT_LOADED, "");
	assert_true(turn(fixture, S));
	assert_true(fixture->injected.loaded);
	assert_silent(fixture->text);
}

static void one_in_which_libcuda_has_just_come_is_left_alone_for_a_while(void **state)
{
	struct fixture *fixture = *state;

	gpu_inject__want(fixture->inject, fixture->own, S, false);
	gpu_inject__want(fixture->inject, fixture->own, 2 * S, true);
	assert_false(turn(fixture, 3 * S - 1));
	assert_int_equal(double_of.started, 0);
	assert_false(turn(fixture, 3 * S));
	assert_int_equal(double_of.started, 1);
}

/* A young process may not have reached main() yet. */
static void a_young_process_is_left_alone_too(void **state)
{
	struct fixture *fixture = *state;
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	gpu_inject__want(fixture->inject, (uint32_t)child, S, true);
	assert_false(turn(fixture, 3 * S - 1));
	assert_int_equal(double_of.started, 0);
	assert_false(turn(fixture, 3 * S));
	assert_int_equal(double_of.started, 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void the_others_queue(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tgid = 11; tgid <= 13; tgid++)
		gpu_inject__want(fixture->inject, tgid, S, false);
	for (uint32_t tgid = 11; tgid <= 13; tgid++) {
		assert_false(turn(fixture, 5 * S));
		assert_int_equal(double_of.running.tgid, tgid);
		assert_false(turn(fixture, 5 * S));
		end(INJECT_LOADED, "");
		assert_true(turn(fixture, 5 * S));
		assert_int_equal(fixture->injected.tgid, tgid);
	}
	assert_false(turn(fixture, 100 * S));
	assert_int_equal(double_of.started, 3);
}

static void each_is_injected_once(void **state)
{
	struct fixture *fixture = *state;

	gpu_inject__want(fixture->inject, fixture->own, S, true);
	assert_false(turn(fixture, S));
	end(INJECT_REFUSED, "libc: none");
	assert_true(turn(fixture, S));
	for (uint64_t now_ns = S; now_ns < 20 * S; now_ns += S) {
		gpu_inject__want(fixture->inject, fixture->own, now_ns, true);
		assert_false(turn(fixture, now_ns));
	}
	assert_int_equal(double_of.started, 1);
}

static void execve_makes_it_another_process(void **state)
{
	struct fixture *fixture = *state;

	gpu_inject__want(fixture->inject, fixture->own, S, true);
	assert_false(turn(fixture, S));
	gpu_inject__forget(fixture->inject, fixture->own);
	gpu_inject__want(fixture->inject, fixture->own, S, false);
	/* The result of an injection into the earlier program is dropped. */
	end(INJECT_FAILED, "old");
	assert_false(turn(fixture, 3 * S));
	assert_int_equal(double_of.started, 1);
	assert_false(turn(fixture, 3 * S));
	assert_int_equal(double_of.started, 2);
	end(INJECT_REFUSED, "new");
	assert_true(turn(fixture, 3 * S));
	assert_string_equal(fixture->injected.why, "new");
}

static void one_that_has_ended_is_not_injected(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tgid = 11; tgid <= 13; tgid++)
		gpu_inject__want(fixture->inject, tgid, S, false);
	gpu_inject__forget(fixture->inject, 12);
	gpu_inject__forget(fixture->inject, 12);
	gpu_inject__forget(fixture->inject, 4711);
	for (int i = 0; i < 8; i++) {
		turn(fixture, 5 * S);
		end(INJECT_LOADED, "");
		assert_int_not_equal(double_of.running.tgid, 12);
	}
	assert_int_equal(double_of.started, 2);
}

static void each_outcome_says_why(void **state)
{
	struct fixture *fixture = *state;

	assert_string_equal(why(fixture, INJECT_REFUSED, "seccomp: mmap"), "seccomp: mmap");
	assert_string_equal(why(fixture, INJECT_NO_THREAD, "none in 5 s"), "none in 5 s");
	for (int status = INJECT_REFUSED; status < INJECT_STATUS_COUNT; status++) {
		const char *text = why(fixture, (enum inject_status)status, "");

		/* Nothing is reported of a process that has ended. */
		assert_int_equal(*text != '\0', status != INJECT_GONE);
	}
	/* The child of the tool that injects may send any status. */
	assert_true(*why(fixture, (enum inject_status)4711, "") != '\0');
}

static void a_shim_that_does_not_start_is_no_success(void **state)
{
	struct fixture *fixture = *state;

	gpu_inject__want(fixture->inject, fixture->own, S, true);
	assert_false(turn(fixture, S));
	end(INJECT_LOADED, "");
	double_of.outcome.result = EPERM;
	assert_true(turn(fixture, S));
	assert_false(fixture->injected.loaded);
	assert_string_equal(fixture->injected.why,
			    "it was loaded but could not start: Operation not permitted");
}

static void one_that_is_there_already_can_be_looked_for(void **state)
{
	struct fixture *fixture = *state;

	gpu_inject__want(fixture->inject, fixture->own, S, true);
	assert_false(turn(fixture, S));
	end(INJECT_PRESENT, "");
	assert_true(turn(fixture, S));
	assert_true(fixture->injected.loaded);
}

static void what_cannot_be_begun_is_told(void **state)
{
	struct fixture *fixture = *state;

	double_of.start_err = -ENOMEM;
	gpu_inject__want(fixture->inject, fixture->own, S, true);
	assert_true(turn(fixture, S));
	assert_string_equal(fixture->injected.why, "Cannot allocate memory");
	double_of.start_err = 0;
	assert_false(turn(fixture, S));
	assert_int_equal(double_of.started, 0);
}

static void at_the_end_the_running_one_is_waited_for_and_no_other_begun(void **state)
{
	struct fixture *fixture = *state;

	gpu_inject__want(fixture->inject, 11, S, false);
	gpu_inject__want(fixture->inject, 12, S, false);
	assert_false(turn(fixture, 5 * S));
	gpu_inject__finish(fixture->inject, &fixture->injected);
	assert_false(double_of.is_running);
	assert_false(turn(fixture, 5 * S));
	assert_int_equal(double_of.started, 1);
	gpu_inject__finish(fixture->inject, &fixture->injected);
	assert_int_equal(fixture->injected.tgid, 0);
}

static void what_is_injected_at_the_end_is_told(void **state)
{
	struct fixture *fixture = *state;

	log_set_level(LOG_INFO);
	gpu_inject__want(fixture->inject, 11, S, false);
	assert_false(turn(fixture, 5 * S));
	double_of.outcome = (struct inject_outcome){.status = INJECT_LOADED, .tid = 77};
	gpu_inject__finish(fixture->inject, &fixture->injected);
	assert_int_equal(fixture->injected.tgid, 11);
	assert_true(fixture->injected.loaded);
	assert_one_line(fixture->text, "process 11: shim injected through thread 77");
}

static void what_was_injected_into_a_program_that_is_gone_is_not_told_at_the_end(void **state)
{
	struct fixture *fixture = *state;

	gpu_inject__want(fixture->inject, 11, S, false);
	assert_false(turn(fixture, 5 * S));
	gpu_inject__forget(fixture->inject, 11);
	gpu_inject__finish(fixture->inject, &fixture->injected);
	assert_int_equal(fixture->injected.tgid, 0);
	assert_false(fixture->injected.loaded);
}

static void a_success_is_told_with_what_it_cost(void **state)
{
	struct fixture *fixture = *state;

	log_set_level(LOG_INFO);
	gpu_inject__want(fixture->inject, fixture->own, S, true);
	turn(fixture, S);
	end(INJECT_LOADED, "");
	double_of.outcome.tid = 77;
	double_of.outcome.stop_ns = 123000;
	turn(fixture, S);
	assert_one_line(fixture->text, "through thread 77, which was stopped for 0.123 ms");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(without_a_shim_there_is_nothing_to_inject),
		TEST(one_that_had_libcuda_from_the_start_is_not_waited_for),
		TEST(one_in_which_libcuda_has_just_come_is_left_alone_for_a_while),
		TEST(a_young_process_is_left_alone_too),
		TEST(the_others_queue),
		TEST(each_is_injected_once),
		TEST(execve_makes_it_another_process),
		TEST(one_that_has_ended_is_not_injected),
		TEST(each_outcome_says_why),
		TEST(a_shim_that_does_not_start_is_no_success),
		TEST(one_that_is_there_already_can_be_looked_for),
		TEST(what_cannot_be_begun_is_told),
		TEST(at_the_end_the_running_one_is_waited_for_and_no_other_begun),
		TEST(what_is_injected_at_the_end_is_told),
		TEST(what_was_injected_into_a_program_that_is_gone_is_not_told_at_the_end),
		TEST(a_success_is_told_with_what_it_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
