/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "search/hint.h"
#include "base/clock.h"
#include "base/log.h"
#include "stderr_fixture.h"

#define TURN_US	  10000
#define TURNS_MAX 6000

#define BUSIEST "no step was seen yet; the busiest candidates of process 42 are:\n"
#define IDLE                                                                                       \
	"  none: no other candidate was called in two seconds either; is the server idle? "        \
	"(--list-steps -p 42 shows all of them)\n"
#define FAILED                                                                                     \
	"no step was seen yet, and no candidate was found in process 42 (--list-steps -p 42 says " \
	"why)\n"

struct fixture {
	struct stderr_fixture *said;
	void *said_state;
	struct options options;
	struct hint *hint;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	*state = fixture;
	/* main() ignores SIGPIPE; the child must not. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_DFL);
	if (stderr_setup(&fixture->said_state))
		return -1;
	fixture->said = fixture->said_state;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	hint__free(fixture->hint);
	log_set_level(LOG_INFO);
	stderr_teardown(&fixture->said_state);
	free(fixture);
	return 0;
}

/* Begins a hint for process 42. The child runs look. */
static struct hint *begin(struct fixture *fixture, hint_look_fn look)
{
	fixture->hint = hint__begin(&fixture->options, 42, look);
	return fixture->hint;
}

/* The message after the child has ended. */
static const char *run(struct fixture *fixture, hint_look_fn look)
{
	int turns = 0;

	assert_non_null(begin(fixture, look));
	while (!hint__check(fixture->hint)) {
		assert_true(turns++ < TURNS_MAX);
		usleep(TURN_US);
	}
	return stderr_text(fixture->said);
}

static int find(int output, const char *name, double calls_per_s, double mean_ms)
{
	struct candidate candidate = {.calls_per_s = calls_per_s, .mean_ms = mean_ms};

	snprintf(candidate.name, sizeof(candidate.name), "%s", name);
	return write(output, &candidate, sizeof(candidate)) != sizeof(candidate);
}

static size_t count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void assert_no_child(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

#define LOOK(name) static int name(const struct options *options, uint32_t tgid, int output)

LOOK(find_nothing)
{
	return 0;
}

LOOK(find_decode)
{
	return find(output, "decode", 12.5, 3.1);
}

static int find_descendant(int output, const char *name, bool is_child)
{
	struct candidate candidate = {.tgid = 130, .is_child = is_child, .launcher = "bash"};

	snprintf(candidate.name, sizeof(candidate.name), "%s", name);
	return write(output, &candidate, sizeof(candidate)) != sizeof(candidate);
}

LOOK(find_child)
{
	return find_descendant(output, "llama-server", true);
}

LOOK(find_grandchild)
{
	return find_descendant(output, "llama-server", false);
}

LOOK(fail_after_one)
{
	find(output, "decode", 12.5, 3.1);
	return -ENOENT;
}

LOOK(find_it_short_of_cpus)
{
	return -EAGAIN;
}

LOOK(find_no_regular_step)
{
	return -ENODATA;
}

LOOK(burn_a_cpu)
{
	for (volatile uint64_t i = 0;; i++)
		;
	return 0;
}

LOOK(tell_priority)
{
	return find(output, "nice", getpriority(PRIO_PROCESS, 0), 1);
}

LOOK(crash)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

LOOK(be_interrupted)
{
	raise(SIGINT);
	return 0;
}

LOOK(say_on_stderr)
{
	fputs("no\n", stderr);
	log_err("neither");
	return -ENOENT;
}

LOOK(find_what_never_returned)
{
	return find(output, "serve", 0.5, 0);
}

LOOK(find_three)
{
	return find(output, "a", 4, 1) || find(output, "b", 3, 1) || find(output, "c", 2, 1);
}

LOOK(find_an_operator)
{
	return find(output, "A::operator  [](int)", 4, 1);
}

LOOK(find_a_name_without_an_end)
{
	struct candidate candidate = {.calls_per_s = 1, .mean_ms = 1};

	memset(candidate.name, 'x', sizeof(candidate.name));
	return write(output, &candidate, sizeof(candidate)) != sizeof(candidate);
}

LOOK(find_in_pieces)
{
	struct candidate candidate = {.calls_per_s = 5, .mean_ms = 1, .name = "f"};

	if (write(output, &candidate, 100) != 100)
		return 1;
	usleep(50000);
	return write(output, (char *)&candidate + 100, sizeof(candidate) - 100) < 0;
}

LOOK(write_half)
{
	return write(output, "half", 4) != 4;
}

LOOK(write_a_megabyte)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 500; i++)
		find(output, "f", 5, 1);
	return 0;
}

LOOK(sleep_long)
{
	sleep(600);
	return 0;
}

LOOK(close_and_sleep)
{
	close(output);
	sleep(600);
	return 0;
}

LOOK(tell_whom)
{
	char text[64];

	snprintf(text, sizeof(text), "process %u, budget %d", tgid,
		 (int)options->judging.classify.budget_us);
	return find(output, text, 1, 1);
}

LOOK(tell_signals)
{
	struct sigaction action;
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	sigaction(SIGPIPE, NULL, &action);
	return find(output,
		    sigisemptyset(&blocked) && action.sa_handler == SIG_DFL ? "none" : "some", 1,
		    1);
}

LOOK(tell_files)
{
	char link[64] = "", text[96];

	if (readlink("/proc/self/fd/0", link, sizeof(link) - 1) < 0)
		return 1;
	/* Not counted: opendir()'s own descriptor, "." and "..". */
	snprintf(text, sizeof(text), "%s, %zu open", link, count_fds() - 3);
	return find(output, text, 1, 1);
}

/* The names that are written for these rates, in order. */
static const char *write_rates(const struct rate *rates, size_t count)
{
	static char names[256];
	struct candidate candidate;
	int ends[2];

	names[0] = '\0';
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(hint_write(rates, count, ends[1]), 0);
	close(ends[1]);
	while (read(ends[0], &candidate, sizeof(candidate)) == sizeof(candidate))
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%.20s %.1f %.1f; ",
			 candidate.name, candidate.calls_per_s, candidate.mean_ms);
	close(ends[0]);
	return names;
}

static struct step_function functions[] = {{.name = "a"}, {.name = "b"}, {.name = "c"},
					   {.name = "d"}, {.name = "e"}, {.name = "f"}};

#define RATE(index, ...)                                                                           \
	{                                                                                          \
		.function = &functions[index], .since_ns = 2000000000, __VA_ARGS__                 \
	}

static void functions_not_called_or_called_too_often_are_no_candidates(void **state)
{
	const struct rate rates[] = {
		RATE(0, .calls = 0),
		RATE(1, .calls = 8, .mean_ns = 2500000),
		RATE(2, .calls = 90000, .mean_ns = 10, .too_often = true),
		RATE(3, .calls = 1),
		RATE(4, .calls = 100, .mean_ns = 3000), /* a 67th of what b took */
	};

	assert_string_equal(write_rates(rates, 5), "b 4.0 2.5; d 0.5 0.0; ");
	assert_string_equal(write_rates(rates, 1), "");
	assert_string_equal(write_rates(&rates[2], 1), "");
}

static void three_candidates_are_written_those_skipped_not_counted(void **state)
{
	const struct rate rates[] = {
		RATE(0, .calls = 2), RATE(1, .calls = 0),
		RATE(2, .calls = 4), RATE(3, .calls = 9, .too_often = true),
		RATE(4, .calls = 6), RATE(5, .calls = 8),
	};

	assert_string_equal(write_rates(rates, 6), "a 1.0 0.0; c 2.0 0.0; e 3.0 0.0; ");
}

static void a_candidate_that_cannot_be_written_is_an_error(void **state)
{
	const struct rate rate = RATE(0, .calls = 2);

	assert_int_equal(hint_write(&rate, 1, -1), -EIO);
}

static void free_accepts_null(void **state)
{
	hint__free(NULL);
}

static void a_hint_without_descriptors_is_none_and_says_so(void **state)
{
	struct fixture *fixture = *state;
	struct rlimit before, none;
	struct hint *hint;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	hint = begin(fixture, find_nothing);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_null(hint);
	assert_one_line(fixture->said, "candidates: Too many");
}

static void a_child_that_fails_is_a_failed_search_whatever_it_found(void **state)
{
	assert_string_equal(run(*state, fail_after_one), FAILED);
}

static void an_engine_short_of_cpus_is_left_alone_and_the_command_named(void **state)
{
	assert_string_equal(run(*state, find_it_short_of_cpus),
			    "no step was seen yet; candidates are not searched while process 42 is "
			    "short of CPUs: ferrum-bpftrace --list-steps -p 42 does it\n");
}

static void without_a_regular_step_none_is_named(void **state)
{
	assert_string_equal(run(*state, find_no_regular_step),
			    "no step was seen yet, and no regular step was found in process 42 by "
			    "the stacks of its busy threads (--list-steps -p 42 looks again)\n");
}

static void a_child_that_takes_too_much_of_a_cpu_is_ended_and_counted(void **state)
{
	struct fixture *fixture = *state;
	struct hint_wait wait = {.due_ns = 0};
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), spent_ns;
	int turns = 0;

	wait.hint = begin(fixture, burn_a_cpu);
	fixture->hint = NULL;
	assert_non_null(wait.hint);
	while (wait.hint) {
		assert_true(turns++ < TURNS_MAX);
		hint_wait_turn(&wait, 1);
		usleep(TURN_US);
	}
	spent_ns = hint_wait_end(&wait);
	/* Some kernels count time that the host of a virtual machine took as the child's. */
	assert_in_range(spent_ns, 400 * NS_PER_MS, clock_ns(CLOCK_MONOTONIC) - begin_ns);
	assert_string_equal(
		stderr_text(fixture->said),
		"no step was seen yet; a search for candidates in process 42 takes more "
		"than 500 ms of a CPU: ferrum-bpftrace --list-steps -p 42 does it\n");
}

static void the_cpu_time_of_a_child_that_is_killed_is_counted(void **state)
{
	struct fixture *fixture = *state;
	struct hint_wait wait = {.due_ns = 0};

	wait.hint = begin(fixture, sleep_long);
	fixture->hint = NULL;
	assert_non_null(wait.hint);
	assert_true(hint_wait_end(&wait) > 0);
	assert_null(wait.hint);
	assert_no_child();
}

static void the_child_has_a_low_priority(void **state)
{
	char expected[64];

	snprintf(expected, sizeof(expected), "'nice'  (%d.0 calls/s",
		 getpriority(PRIO_PROCESS, 0) + 10);
	assert_non_null(strstr(run(*state, tell_priority), expected));
}

static void a_child_that_crashes_is_a_failed_search(void **state)
{
	assert_string_equal(run(*state, crash), FAILED);
}

static void nothing_is_said_when_ctrl_c_ended_the_child_too(void **state)
{
	assert_string_equal(run(*state, be_interrupted), "");
}

static void what_the_child_says_on_stderr_is_not_shown(void **state)
{
	assert_string_equal(run(*state, say_on_stderr), FAILED);
}

static void nothing_is_started_when_nobody_would_hear_it(void **state)
{
	log_set_level(LOG_WARN);
	assert_null(begin(*state, find_nothing));
	assert_no_child();
}

static void no_candidate_is_an_idle_server(void **state)
{
	assert_string_equal(run(*state, find_nothing), BUSIEST IDLE);
}

static void half_a_candidate_is_none(void **state)
{
	assert_string_equal(run(*state, write_half), BUSIEST IDLE);
}

static void a_candidate_is_named_with_its_figures(void **state)
{
	assert_string_equal(run(*state, find_decode),
			    BUSIEST "  --step 'decode'  (12.5 calls/s, mean 3.100 ms)\n");
}

static void a_candidate_that_never_returned_has_no_mean(void **state)
{
	assert_string_equal(run(*state, find_what_never_returned),
			    BUSIEST "  --step 'serve'  (0.5 calls/s, duration not known)\n");
}

static void candidates_are_named_in_their_order(void **state)
{
	assert_string_equal(run(*state, find_three),
			    BUSIEST "  --step 'a'  (4.0 calls/s, mean 1.000 ms)\n"
				    "  --step 'b'  (3.0 calls/s, mean 1.000 ms)\n"
				    "  --step 'c'  (2.0 calls/s, mean 1.000 ms)\n");
}

static void a_child_with_a_step_function_is_named_with_what_to_type(void **state)
{
	assert_string_equal(run(*state, find_child),
			    "process 42 (bash) has no step function, but its child 130 "
			    "(llama-server) has: ferrum-bpftrace -p 130, or -p 42 -f\n");
}

static void a_grandchild_with_a_step_function_is_called_descendant(void **state)
{
	assert_string_equal(run(*state, find_grandchild),
			    "process 42 (bash) has no step function, but its descendant 130 "
			    "(llama-server) has: ferrum-bpftrace -p 130, or -p 42 -f\n");
}

static void a_name_may_hold_spaces_and_brackets(void **state)
{
	assert_string_equal(run(*state, find_an_operator), BUSIEST
			    "  --step 'A::operator  [](int)'  (4.0 calls/s, mean 1.000 ms)\n");
}

static void a_name_without_an_end_is_cut(void **state)
{
	assert_non_null(strstr(run(*state, find_a_name_without_an_end), "  --step 'xxxxxxxx"));
}

static void a_candidate_may_come_in_pieces(void **state)
{
	assert_string_equal(run(*state, find_in_pieces),
			    BUSIEST "  --step 'f'  (5.0 calls/s, mean 1.000 ms)\n");
}

static void more_than_is_kept_does_not_stop_the_child(void **state)
{
	assert_string_equal(run(*state, write_a_megabyte),
			    BUSIEST "  --step 'f'  (5.0 calls/s, mean 1.000 ms)\n"
				    "  --step 'f'  (5.0 calls/s, mean 1.000 ms)\n"
				    "  --step 'f'  (5.0 calls/s, mean 1.000 ms)\n");
}

static void check_does_not_wait(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(begin(fixture, sleep_long));
	for (int i = 0; i < 5; i++) {
		assert_false(hint__check(fixture->hint));
		usleep(TURN_US);
	}
	assert_silent(fixture->said);
}

static void a_child_that_closes_its_output_has_not_ended(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(begin(fixture, close_and_sleep));
	for (int i = 0; i < 20; i++) {
		assert_false(hint__check(fixture->hint));
		usleep(TURN_US);
	}
}

static void free_ends_a_child_that_still_runs(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(begin(fixture, sleep_long));
	hint__free(fixture->hint);
	fixture->hint = NULL;
	assert_no_child();
}

static void nothing_is_left_of_a_hint(void **state)
{
	struct fixture *fixture = *state;
	size_t before = count_fds();

	run(fixture, find_decode);
	assert_no_child();
	hint__free(fixture->hint);
	assert_non_null(begin(fixture, sleep_long));
	hint__free(fixture->hint);
	fixture->hint = NULL;
	assert_int_equal(count_fds(), before);
}

static void the_child_knows_the_process_and_the_options(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.judging.classify.budget_us = 7;
	assert_non_null(strstr(run(fixture, tell_whom), "'process 42, budget 7'"));
}

static void the_child_has_none_of_our_blocked_or_ignored_signals(void **state)
{
	sigset_t blocked, before;
	const char *said;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	said = run(*state, tell_signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_non_null(strstr(said, "'none'"));
}

/*
 * The links of our probes are descriptors. If the child held them open, closing ours would not
 * remove the probes.
 */
static void the_child_has_nothing_of_ours_open(void **state)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	const char *said = run(*state, tell_files);

	close(zero);
	assert_non_null(strstr(said, "'/dev/null, 4 open'"));
}

static void a_hint_is_due_once(void **state)
{
	struct fixture *fixture = *state;
	struct hint_wait wait = {.due_ns = 100};

	assert_false(hint_wait_turn(&wait, 99));
	assert_true(hint_wait_turn(&wait, 100));
	assert_false(hint_wait_turn(&wait, 101));
	assert_null(wait.hint);
	assert_silent(fixture->said);
}

static void a_hint_of_a_window_is_freed_when_it_is_said(void **state)
{
	struct fixture *fixture = *state;
	struct hint_wait wait = {.due_ns = 0};
	int turns = 0;

	wait.hint = begin(fixture, fail_after_one);
	fixture->hint = NULL;
	assert_non_null(wait.hint);
	while (wait.hint) {
		assert_true(turns++ < TURNS_MAX);
		assert_false(hint_wait_turn(&wait, 1));
		usleep(TURN_US);
	}
	assert_one_line(fixture->said, "no candidate was found in process 42");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(functions_not_called_or_called_too_often_are_no_candidates),
		TEST(three_candidates_are_written_those_skipped_not_counted),
		TEST(a_candidate_that_cannot_be_written_is_an_error),
		TEST(free_accepts_null),
		TEST(a_hint_without_descriptors_is_none_and_says_so),
		TEST(a_child_that_fails_is_a_failed_search_whatever_it_found),
		TEST(a_child_that_crashes_is_a_failed_search),
		TEST(an_engine_short_of_cpus_is_left_alone_and_the_command_named),
		TEST(without_a_regular_step_none_is_named),
		TEST(a_child_that_takes_too_much_of_a_cpu_is_ended_and_counted),
		TEST(the_cpu_time_of_a_child_that_is_killed_is_counted),
		TEST(the_child_has_a_low_priority),
		TEST(nothing_is_said_when_ctrl_c_ended_the_child_too),
		TEST(what_the_child_says_on_stderr_is_not_shown),
		TEST(nothing_is_started_when_nobody_would_hear_it),
		TEST(no_candidate_is_an_idle_server),
		TEST(half_a_candidate_is_none),
		TEST(a_candidate_is_named_with_its_figures),
		TEST(a_candidate_that_never_returned_has_no_mean),
		TEST(candidates_are_named_in_their_order),
		TEST(a_child_with_a_step_function_is_named_with_what_to_type),
		TEST(a_grandchild_with_a_step_function_is_called_descendant),
		TEST(a_name_may_hold_spaces_and_brackets),
		TEST(a_name_without_an_end_is_cut),
		TEST(a_candidate_may_come_in_pieces),
		TEST(more_than_is_kept_does_not_stop_the_child),
		TEST(check_does_not_wait),
		TEST(a_child_that_closes_its_output_has_not_ended),
		TEST(free_ends_a_child_that_still_runs),
		TEST(nothing_is_left_of_a_hint),
		TEST(the_child_knows_the_process_and_the_options),
		TEST(the_child_has_none_of_our_blocked_or_ignored_signals),
		TEST(the_child_has_nothing_of_ours_open),
		TEST(a_hint_is_due_once),
		TEST(a_hint_of_a_window_is_freed_when_it_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
