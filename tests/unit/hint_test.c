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
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "hint.h"
#include "log.h"
#include "stderr_fixture.h"

#define TURN_US	  10000
#define TURNS_MAX 6000

#define HEADER	"   calls/s          mean  step function\n"
#define BUSIEST "no step was seen yet; the busiest candidates of process 42 are:\n"
#define IDLE                                                                                       \
	"  no other candidate was called in two seconds either: is the server idle? "              \
	"(--list-steps -p 42 shows all of them)\n"
#define FAILED                                                                                     \
	"no step was seen yet, and no candidate was found in process 42 (--list-steps -p 42 says " \
	"why)\n"

struct fixture {
	struct stderr_fixture *said;
	void *said_state;
	char folder[32];
	char program[64];
	struct options options;
	struct hint *hint;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	*state = fixture;
	strcpy(fixture->folder, "/tmp/fbt_hint_XXXXXX");
	if (!mkdtemp(fixture->folder))
		return -1;
	snprintf(fixture->program, sizeof(fixture->program), "%s/tool", fixture->folder);
	/* main ignores it, and every program it starts must not. */
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
	char command[64];

	hint__free(fixture->hint);
	log_set_level(LOG_INFO);
	stderr_teardown(&fixture->said_state);
	vec_free(&fixture->options.symbol_files);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
	free(fixture);
	return system(command);
}

/* Begins a hint for process 42 whose program is a script. Not sh: dash unblocks all signals. */
static struct hint *begin(struct fixture *fixture, const char *script)
{
	FILE *file = fopen(fixture->program, "we");

	assert_non_null(file);
	fprintf(file, "#!/bin/bash\n%s\n", script);
	fclose(file);
	assert_int_equal(chmod(fixture->program, 0700), 0);
	fixture->hint = hint__begin_with(fixture->program, &fixture->options, 42);
	return fixture->hint;
}

/* What is said once the script has ended. */
static const char *run(struct fixture *fixture, const char *script)
{
	int turns = 0;

	assert_non_null(begin(fixture, script));
	while (!hint__check(fixture->hint)) {
		assert_true(turns++ < TURNS_MAX);
		usleep(TURN_US);
	}
	return stderr_text(fixture->said);
}

/* What is said of this listing. */
static const char *say(struct fixture *fixture, const char *listing)
{
	char script[4096];

	snprintf(script, sizeof(script), "cat <<'END'\n%sEND", listing);
	return run(fixture, script);
}

/* What the script writes to "$0.seen". */
static char *see(struct fixture *fixture, const char *script, char seen[256])
{
	char path[80];
	size_t length;
	FILE *file;

	run(fixture, script);
	snprintf(path, sizeof(path), "%s.seen", fixture->program);
	file = fopen(path, "re");
	assert_non_null(file);
	length = fread(seen, 1, 255, file);
	seen[length] = '\0';
	fclose(file);
	return seen;
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
	hint = hint__begin_with("/bin/true", &fixture->options, 42);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_null(hint);
	assert_one_line(fixture->said, "no step was seen yet; search for candidates: Too many");
}

static void a_program_that_is_not_there_is_a_failed_search(void **state)
{
	struct fixture *fixture = *state;

	fixture->hint = hint__begin_with("/no/such/program", &fixture->options, 42);
	assert_non_null(fixture->hint);
	while (!hint__check(fixture->hint))
		usleep(TURN_US);
	assert_string_equal(stderr_text(fixture->said), FAILED);
}

static void a_program_that_fails_is_a_failed_search_whatever_it_printed(void **state)
{
	assert_string_equal(run(*state, "echo '  5.0  1.000 ms  f  [x]'; exit 1"), FAILED);
}

static void a_program_that_crashes_is_a_failed_search(void **state)
{
	assert_string_equal(run(*state, "kill -SEGV $$"), FAILED);
}

static void nothing_is_said_when_ctrl_c_ended_the_program_too(void **state)
{
	assert_string_equal(run(*state, "kill -INT $$"), "");
}

static void what_the_program_says_on_stderr_is_not_shown(void **state)
{
	assert_string_equal(run(*state, "echo no >&2; exit 1"), FAILED);
}

static void nothing_is_started_when_nobody_would_hear_it(void **state)
{
	struct fixture *fixture = *state;

	log_set_level(LOG_WARN);
	assert_null(begin(fixture, "exit 0"));
	assert_no_child();
}

static void a_listing_without_candidates_is_an_idle_server(void **state)
{
	assert_string_equal(say(*state, HEADER), BUSIEST IDLE);
}

static void functions_that_were_not_called_are_not_named(void **state)
{
	assert_string_equal(say(*state, HEADER "       0.0             -  llama_decode  [engine, "
					       "built in]\n"
					       "5 more were not called:\n"
					       "       0.0             -  f  [engine]\n"),
			    BUSIEST IDLE);
}

static void functions_that_are_called_too_often_are_not_named(void **state)
{
	assert_string_equal(say(*state, HEADER "     2000+     too often  f  [engine]\n"),
			    BUSIEST IDLE);
}

static void lines_that_are_no_candidates_are_passed_over(void **state)
{
	assert_string_equal(say(*state, "5.0  [x]\n5.0 1.0 ms  [x]\n5.0 1.0 ms\n\n  [\nhello\n"),
			    BUSIEST IDLE);
}

static void a_candidate_is_named_with_its_figures(void **state)
{
	assert_string_equal(say(*state, HEADER "      12.5      3.100 ms  decode  [engine]\n"),
			    BUSIEST "  --step 'decode'  (12.5 calls/s, mean 3.100 ms)\n");
}

static void a_candidate_that_never_returned_has_no_mean(void **state)
{
	assert_string_equal(say(*state, HEADER "       0.5             -  serve  [engine]\n"),
			    BUSIEST "  --step 'serve'  (0.5 calls/s, none has returned)\n");
}

static void only_the_first_three_are_named(void **state)
{
	assert_string_equal(say(*state, HEADER "       4.0      1.000 ms  a  [engine]\n"
					       "       3.0      1.000 ms  b  [engine]\n"
					       "       2.0      1.000 ms  c  [engine]\n"
					       "       1.0      1.000 ms  d  [engine]\n"),
			    BUSIEST "  --step 'a'  (4.0 calls/s, mean 1.000 ms)\n"
				    "  --step 'b'  (3.0 calls/s, mean 1.000 ms)\n"
				    "  --step 'c'  (2.0 calls/s, mean 1.000 ms)\n");
}

static void a_name_may_hold_spaces_and_brackets(void **state)
{
	assert_string_equal(
		say(*state, HEADER "       4.0      1.000 ms  A::operator  [](int)  [engine]\n"),
		BUSIEST "  --step 'A::operator  [](int)'  (4.0 calls/s, mean 1.000 ms)\n");
}

static void a_listing_may_come_in_pieces(void **state)
{
	assert_string_equal(run(*state, "printf '  5.0  1.0'; sleep 0.05; echo '00 ms  f  [x]'"),
			    BUSIEST "  --step 'f'  (5.0 calls/s, mean 1.000 ms)\n");
}

static void check_does_not_wait(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(begin(fixture, "echo early; exec sleep 600"));
	for (int i = 0; i < 5; i++) {
		assert_false(hint__check(fixture->hint));
		usleep(TURN_US);
	}
	assert_silent(fixture->said);
}

static void a_program_that_closes_its_output_has_not_ended(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(begin(fixture, "exec >&-; exec sleep 600"));
	for (int i = 0; i < 20; i++) {
		assert_false(hint__check(fixture->hint));
		usleep(TURN_US);
	}
}

static void more_than_is_kept_does_not_stop_the_program(void **state)
{
	assert_string_equal(run(*state, "echo '  5.0  1.000 ms  f  [x]'\n"
					"head -c 1000000 /dev/zero"),
			    BUSIEST "  --step 'f'  (5.0 calls/s, mean 1.000 ms)\n");
}

static void free_ends_a_program_that_still_runs(void **state)
{
	struct fixture *fixture = *state;

	assert_non_null(begin(fixture, "exec sleep 600"));
	hint__free(fixture->hint);
	fixture->hint = NULL;
	assert_no_child();
}

static void nothing_is_left_of_a_hint(void **state)
{
	struct fixture *fixture = *state;
	size_t before = count_fds();

	say(fixture, HEADER);
	assert_no_child();
	hint__free(fixture->hint);
	assert_non_null(begin(fixture, "exec sleep 600"));
	hint__free(fixture->hint);
	fixture->hint = NULL;
	assert_int_equal(count_fds(), before);
}

static void the_program_is_asked_to_list_the_steps_of_the_process(void **state)
{
	char seen[256];

	assert_string_equal(see(*state, "echo \"$@\" >$0.seen", seen), "--list-steps -p 42\n");
}

static void symbol_files_are_passed_on(void **state)
{
	struct fixture *fixture = *state;
	char seen[256];

	assert_int_equal(vec_push(&fixture->options.symbol_files, "a b"), 0);
	assert_int_equal(vec_push(&fixture->options.symbol_files, "-c"), 0);
	see(fixture, "printf '%s,' \"$@\" >$0.seen", seen);
	assert_string_equal(seen, "--list-steps,-p,42,--symbols,a b,--symbols,-c,");
}

static void the_environment_is_passed_on(void **state)
{
	char seen[256];

	setenv("FBT_UPROBES", "perf", 1);
	see(*state, "echo $FBT_UPROBES >$0.seen", seen);
	unsetenv("FBT_UPROBES");
	assert_string_equal(seen, "perf\n");
}

static void the_program_has_none_of_our_blocked_signals(void **state)
{
	sigset_t blocked, before;
	char seen[256];

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	see(*state, "grep SigBlk /proc/self/status >$0.seen", seen);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_string_equal(seen, "SigBlk:\t0000000000000000\n");
}

static void the_program_takes_sigpipe_as_it_comes(void **state)
{
	char seen[256];

	see(*state, "sed -n 's/^SigIgn:.//p' /proc/self/status >$0.seen", seen);
	assert_int_equal(strtoull(seen, NULL, 16) & (1ull << (SIGPIPE - 1)), 0);
}

static void the_program_reads_nothing_of_ours(void **state)
{
	int saved = dup(STDIN_FILENO), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char seen[256];

	assert_int_equal(dup2(zero, STDIN_FILENO), STDIN_FILENO);
	see(*state, "readlink /proc/$$/fd/0 >$0.seen", seen);
	dup2(saved, STDIN_FILENO);
	close(saved);
	close(zero);
	assert_string_equal(seen, "/dev/null\n");
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

	wait.hint = begin(fixture, "exit 1");
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
		TEST(free_accepts_null),
		TEST(a_hint_without_descriptors_is_none_and_says_so),
		TEST(a_program_that_is_not_there_is_a_failed_search),
		TEST(a_program_that_fails_is_a_failed_search_whatever_it_printed),
		TEST(a_program_that_crashes_is_a_failed_search),
		TEST(nothing_is_said_when_ctrl_c_ended_the_program_too),
		TEST(what_the_program_says_on_stderr_is_not_shown),
		TEST(nothing_is_started_when_nobody_would_hear_it),
		TEST(a_listing_without_candidates_is_an_idle_server),
		TEST(functions_that_were_not_called_are_not_named),
		TEST(functions_that_are_called_too_often_are_not_named),
		TEST(lines_that_are_no_candidates_are_passed_over),
		TEST(a_candidate_is_named_with_its_figures),
		TEST(a_candidate_that_never_returned_has_no_mean),
		TEST(only_the_first_three_are_named),
		TEST(a_name_may_hold_spaces_and_brackets),
		TEST(a_listing_may_come_in_pieces),
		TEST(check_does_not_wait),
		TEST(a_program_that_closes_its_output_has_not_ended),
		TEST(more_than_is_kept_does_not_stop_the_program),
		TEST(free_ends_a_program_that_still_runs),
		TEST(nothing_is_left_of_a_hint),
		TEST(the_program_is_asked_to_list_the_steps_of_the_process),
		TEST(symbol_files_are_passed_on),
		TEST(the_environment_is_passed_on),
		TEST(the_program_has_none_of_our_blocked_signals),
		TEST(the_program_takes_sigpipe_as_it_comes),
		TEST(the_program_reads_nothing_of_ours),
		TEST(a_hint_is_due_once),
		TEST(a_hint_of_a_window_is_freed_when_it_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
