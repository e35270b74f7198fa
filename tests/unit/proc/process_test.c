/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "child_fixture.h"
#include "proc/process.h"
#include "stderr_fixture.h"
#include <pthread.h>
#include <sys/mman.h>
#include "base/log.h"
#include "target_fixture.h"
#include <stdbool.h>
#include <sys/syscall.h>
#include "proc/status.h"

static const struct process_entry *find(const process_vec *processes, uint32_t tgid)
{
	vec_for_each (process, processes) {
		if (process->tgid == tgid)
			return process;
	}
	return NULL;
}

/* A child that waits to be killed. */
static pid_t start_waiting(void)
{
	int named[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(named), 0);
	pid = child_fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* A name that looks like the end of the name field and the fields after it. */
		prctl(PR_SET_NAME, "a) S 1 (b");
		if (write(named[1], "n", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(named[0], &byte, 1), 1);
	close(named[0]);
	close(named[1]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void list_without_descriptors_is_emfile(void **state)
{
	process_vec processes = {0};
	struct rlimit before, none;
	int err;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	err = processes_list(&processes);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(err, -EMFILE);
	assert_int_equal(processes.count, 0);
	assert_one_line(*state, "/proc: ");
}

static void list_leaves_ourselves_and_kernel_threads_out(void **state)
{
	process_vec processes = {0};

	assert_int_equal(processes_list(&processes), 0);
	assert_null(find(&processes, (uint32_t)getpid()));
	vec_for_each (process, &processes) {
		assert_int_not_equal(process->tgid, 2);
		assert_int_not_equal(process->parent_tgid, 2);
	}
	vec_free(&processes);
}

static void list_has_a_child_of_any_name_and_its_parent(void **state)
{
	pid_t pid = start_waiting();
	process_vec processes = {0};
	const struct process_entry *child;

	assert_int_equal(processes_list(&processes), 0);
	stop(pid);
	child = find(&processes, (uint32_t)pid);
	assert_non_null(child);
	assert_int_equal(child->parent_tgid, getpid());
	vec_free(&processes);
}

static void list_appends(void **state)
{
	process_vec processes = {0};

	vec_push(&processes, ((struct process_entry){.tgid = 1, .parent_tgid = 99}));
	assert_int_equal(processes_list(&processes), 0);
	assert_true(processes.count > 1);
	assert_int_equal(processes.items[0].parent_tgid, 99);
	vec_free(&processes);
}

/*
 * 1 is the parent of 10, which is that of 11, which is that of 12. 20 and 21 are each other's
 * parent.
 */
static process_vec make_family(void)
{
	static const struct process_entry entries[] = {{1, 0},	 {10, 1},  {11, 10},
						       {12, 11}, {20, 21}, {21, 20}};
	process_vec family = {0};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		assert_int_equal(vec_push(&family, entries[i]), 0);
	return family;
}

static void none_descends_from_no_roots(void **state)
{
	process_vec family = make_family();

	assert_false(processes_descends(&family, 12, NULL, 0));
	vec_free(&family);
}

static void descent_in_a_circle_ends(void **state)
{
	process_vec family = make_family();
	uint32_t root = 10;

	assert_false(processes_descends(&family, 20, &root, 1));
	vec_free(&family);
}

static void a_process_that_is_not_listed_descends_from_itself_alone(void **state)
{
	process_vec family = make_family();
	uint32_t roots[] = {10, 77};

	assert_false(processes_descends(&family, 76, roots, 2));
	assert_true(processes_descends(&family, 77, roots, 2));
	vec_free(&family);
}

static void a_grandchild_descends_and_a_parent_does_not(void **state)
{
	process_vec family = make_family();
	uint32_t roots[] = {77, 10};

	assert_true(processes_descends(&family, 12, roots, 2));
	assert_true(processes_descends(&family, 11, roots, 2));
	assert_true(processes_descends(&family, 10, roots, 2));
	assert_false(processes_descends(&family, 1, roots, 2));
	vec_free(&family);
}

static void the_longest_line_of_descent_is_followed_to_its_end(void **state)
{
	process_vec line = {0};
	uint32_t root = 1;

	for (uint32_t tgid = 2; tgid <= 50; tgid++)
		vec_push(&line, ((struct process_entry){.tgid = tgid, .parent_tgid = tgid - 1}));
	assert_true(processes_descends(&line, 50, &root, 1));
	vec_free(&line);
}

static void threads_are_none_if_they_cannot_be_counted(void **state)
{
	struct rlimit before, none;
	uint32_t count;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	count = processes_count_threads(0);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(count, 0);
}

static void there_are_at_least_as_many_threads_as_processes(void **state)
{
	process_vec processes = {0};

	assert_int_equal(processes_list(&processes), 0);
	/* Some may have ended since. */
	assert_true(processes_count_threads(0) > processes.count / 2);
	vec_free(&processes);
}

static void *fork_here(void *ctx)
{
	pid_t *pid = ctx;

	*pid = fork();
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	while (*(volatile pid_t *)pid)
		usleep(1000);
	return NULL;
}

static void children_are_those_of_all_threads(void **state)
{
	pid_vec children = {0};
	pid_t pid = 0, child;
	bool is_there = false;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fork_here, &pid), 0);
	while (!*(volatile pid_t *)&pid)
		usleep(1000);
	child = pid;
	processes_children((uint32_t)getpid(), &children);
	vec_for_each (known, &children)
		is_there |= *known == (uint32_t)child;
	assert_true(is_there);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	children.count = 0;
	processes_children((uint32_t)child, &children);
	assert_int_equal(children.count, 0);
	vec_free(&children);
	pid = 0;
	pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

static struct process_strings split(const char *text, size_t size)
{
	struct process_strings strings;
	char *copy = malloc(size + 1);

	memcpy(copy, text, size);
	assert_int_equal(process_strings_split(&strings, copy, size), 0);
	assert_null(strings.items[strings.count]);
	return strings;
}

static void expect_items(const struct process_strings *strings, const char *const *expected)
{
	size_t i;

	for (i = 0; expected[i]; i++) {
		assert_in_range(i, 0, strings->count);
		assert_non_null(strings->items[i]);
		assert_string_equal(strings->items[i], expected[i]);
	}
	assert_int_equal(strings->count, i);
}

static void process_strings_are_split_at_each_nul(void **state)
{
	struct process_strings strings = split("a\0bc\0", 5);

	expect_items(&strings, (const char *const[]){"a", "bc", NULL});
	process_strings_clear(&strings);
}

static void process_strings_end_without_a_nul_too(void **state)
{
	struct process_strings strings = split("a\0bc", 4);

	expect_items(&strings, (const char *const[]){"a", "bc", NULL});
	process_strings_clear(&strings);
}

static void process_strings_may_be_empty(void **state)
{
	struct process_strings strings = split("\0\0a\0\0", 5);

	expect_items(&strings, (const char *const[]){"", "", "a", "", NULL});
	process_strings_clear(&strings);
	strings = split("", 0);
	expect_items(&strings, (const char *const[]){NULL});
	process_strings_clear(&strings);
}

static void process_strings_keep_any_bytes(void **state)
{
	struct process_strings strings = split("\xff\x01\n\0\xc3", 5);

	expect_items(&strings, (const char *const[]){"\xff\x01\n", "\xc3", NULL});
	process_strings_clear(&strings);
}

static void process_strings_are_bounded_in_number(void **state)
{
	size_t size = 3 * PROCESS_STRINGS_MAX;
	char *text = calloc(1, size + 1);
	struct process_strings strings;

	assert_int_equal(process_strings_split(&strings, text, size), 0);
	assert_int_equal(strings.count, PROCESS_STRINGS_MAX);
	assert_null(strings.items[PROCESS_STRINGS_MAX]);
	process_strings_clear(&strings);
}

static void process_strings_are_those_of_the_process(void **state)
{
	const char *const arguments[] = {TARGET, "--a=b", "", "c d", "\xff", NULL};
	const char *const environment[] = {"A=1", "B=\xfe=", "=odd", "none", NULL};
	pid_t pid = target_start(arguments, environment);
	struct process_strings strings;

	assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "cmdline"), 0);
	expect_items(&strings, arguments);
	process_strings_clear(&strings);
	assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "environ"), 0);
	expect_items(&strings, environment);
	process_strings_clear(&strings);
	target_stop(pid);
}

static void process_text_has_no_secrets(void **state)
{
	const char *const arguments[] = {TARGET,       "--api-key", "sk-1", "",
					 "HF_TOKEN=x", "--last",    NULL};
	pid_t pid = target_start(arguments, (const char *const[]){NULL});
	struct process_text text;

	process_text_read(&text, (uint32_t)pid);
	target_stop(pid);
	assert_string_equal(text.cmdline,
			    TARGET " --api-key [redacted]  HF_TOKEN=[redacted] --last");
}

static void process_text_replaces_a_secret_that_is_cut_off(void **state)
{
	const size_t filled = sizeof(((struct process_text *)NULL)->cmdline) - sizeof(TARGET) - 40;
	char *filler = malloc(filled + 1);
	const char *const arguments[] = {TARGET, filler, "--api-key",
					 "1234567890123456789012345678901234567890sk", NULL};
	struct process_text text;
	const char *shown;
	pid_t pid;

	memset(filler, 'x', filled);
	filler[filled] = '\0';
	pid = target_start(arguments, (const char *const[]){NULL});
	process_text_read(&text, (uint32_t)pid);
	target_stop(pid);
	free(filler);
	shown = strchr(text.cmdline + sizeof(TARGET), ' ');
	assert_non_null(shown);
	assert_string_equal(shown, " --api-key [redacted]");
}

static void process_strings_may_be_long(void **state)
{
	const size_t each = 100000;
	char *long_string = malloc(each + 1);
	const char *const arguments[] = {TARGET,      long_string, long_string, long_string,
					 long_string, long_string, "last",	NULL};
	struct process_strings strings;
	pid_t pid;

	memset(long_string, 'x', each);
	long_string[each] = '\0';
	pid = target_start(arguments, (const char *const[]){NULL});
	assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "cmdline"), 0);
	expect_items(&strings, arguments);
	process_strings_clear(&strings);
	target_stop(pid);
	free(long_string);
}

static void process_strings_of_an_empty_environment_are_none(void **state)
{
	pid_t pid = target_start((const char *const[]){TARGET, NULL}, (const char *const[]){NULL});
	struct process_strings strings;

	assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "environ"), 0);
	expect_items(&strings, (const char *const[]){NULL});
	process_strings_clear(&strings);
	target_stop(pid);
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void process_strings_are_there_when_the_first_thread_has_ended(void **state)
{
	struct process_strings own, strings = {0};
	pthread_t thread;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		pthread_exit(NULL);
	}
	assert_int_equal(process_strings_read(&own, (uint32_t)getpid(), "cmdline"), 0);
	/* Reads before, during and after the end of the first thread. */
	for (int i = 0; i < 200; i++) {
		process_strings_clear(&strings);
		assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "cmdline"), 0);
		usleep(1000);
	}
	expect_items(&strings, (const char *const *)own.items);
	process_strings_clear(&strings);
	process_strings_clear(&own);
	target_stop(pid);
}

/*
 * A process whose environment is all of this text, according to /proc. 0 if the kernel does not
 * allow this.
 */
static pid_t start_liar(const char *text, size_t size)
{
	uintptr_t at = (uintptr_t)text;
	/* The other fields only have to be valid. */
	struct prctl_mm_map map = {.start_code = at,
				   .end_code = at + 1,
				   .start_data = at,
				   .end_data = at,
				   .start_brk = at + 1,
				   .brk = at + 1,
				   .start_stack = at,
				   .arg_start = at,
				   .arg_end = at,
				   .env_start = at,
				   .env_end = at + size,
				   .exe_fd = (uint32_t)-1};
	int ends[2];
	char failed;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		failed = prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) != 0;
		if (write(ends[1], &failed, 1) == 1)
			wait_for_ever(NULL);
	}
	assert_int_equal(read(ends[0], &failed, 1), 1);
	close(ends[0]);
	close(ends[1]);
	if (!failed)
		return pid;
	target_stop(pid);
	return 0;
}

static void process_strings_are_bounded_in_bytes(void **state)
{
	const size_t size = PROCESS_STRINGS_BYTES_MAX + (4 << 20);
	char *text = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct process_strings strings;
	pid_t pid;

	memset(text, 'x', size);
	memcpy(text, "A=1", 4);
	pid = start_liar(text, size);
	if (!pid) {
		munmap(text, size);
		skip(); /* needs CONFIG_CHECKPOINT_RESTORE */
	}
	log_set_level(LOG_DEBUG);
	assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "environ"), 0);
	log_set_level(LOG_INFO);
	/* The second string has no end within the bound. */
	expect_items(&strings, (const char *const[]){"A=1", NULL});
	assert_one_line(*state, "more than 8388608 bytes: the rest is left out");
	process_strings_clear(&strings);
	target_stop(pid);
	munmap(text, size);
}

static void process_strings_of_no_process_are_an_error_for_debugging(void **state)
{
	pid_t pid = target_start((const char *const[]){TARGET, NULL}, (const char *const[]){NULL});
	struct process_strings strings;

	target_stop(pid);
	assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "environ"), -ENOENT);
	assert_null(strings.items);
	assert_silent(*state);
	log_set_level(LOG_DEBUG);
	assert_int_equal(process_strings_read(&strings, (uint32_t)pid, "environ"), -ENOENT);
	log_set_level(LOG_INFO);
	assert_one_line(*state, "/environ: No such file or directory");
	process_strings_clear(&strings);
}

#define STRINGS_TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

struct fixture {
	struct stderr_fixture *errors;
	struct pid_set *set;
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

	pid_set__free(fixture->set);
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
	pid_t pid = child_fork();

	if (!pid) {
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(vec_push(&fixture->pids, (uint32_t)pid), 0);
	return pid;
}

/* The process becomes a zombie. */
static void end_sleeper(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void watch(struct fixture *fixture)
{
	assert_int_equal(pid_set__new(&fixture->set, &fixture->pids), 0);
}

static void free_accepts_null(void **state)
{
	pid_set__free(NULL);
}

static void those_that_live_stay(void **state)
{
	struct fixture *fixture = *state;
	pid_t first = add_sleeper(fixture);

	add_sleeper(fixture);
	watch(fixture);
	assert_int_equal(pid_set__look(fixture->set), 2);
	assert_int_equal(pid_set__pids(fixture->set)->items[0], first);
	assert_silent(fixture->errors);
}

static void those_that_ended_go_with_a_word(void **state)
{
	struct fixture *fixture = *state;
	pid_t first = add_sleeper(fixture), second = add_sleeper(fixture);
	pid_t third = add_sleeper(fixture);

	watch(fixture);
	end_sleeper(second);
	assert_int_equal(pid_set__look(fixture->set), 2);
	assert_int_equal(pid_set__pids(fixture->set)->items[0], first);
	assert_int_equal(pid_set__pids(fixture->set)->items[1], third);
	assert_int_equal(pid_set__look(fixture->set), 2);
	assert_one_line(fixture->errors, "has ended");
}

static void of_the_last_one_the_caller_speaks(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid = add_sleeper(fixture);

	watch(fixture);
	end_sleeper(pid);
	assert_int_equal(pid_set__look(fixture->set), 0);
	assert_silent(fixture->errors);
}

static void one_that_does_not_exist_is_refused(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid = add_sleeper(fixture);

	end_sleeper(pid);
	waitpid(pid, NULL, 0);
	assert_int_equal(pid_set__new(&fixture->set, &fixture->pids), -ESRCH);
	assert_null(fixture->set);
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
	assert_int_equal(pid_set__look(fixture->set), 1);
	end_sleeper(pid);
	waitpid(pid, NULL, 0);
	assert_int_equal(pid_set__look(fixture->set), 0);
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
	pid_t pid = child_fork();

	if (!pid) {
		pthread_create(&thread, NULL, wait_forever, NULL);
		syscall(SYS_exit, 0);
	}
	assert_int_equal(vec_push(&fixture->pids, (uint32_t)pid), 0);
	while (!thread_stat_read(&stat, (struct proc_ref){.tgid = (uint32_t)pid}) &&
	       stat.state != 'Z')
		usleep(1000);
	watch(fixture);
	assert_int_equal(pid_set__look(fixture->set), 1);
}

#define PID_SET_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(list_without_descriptors_is_emfile),
		TEST(list_leaves_ourselves_and_kernel_threads_out),
		TEST(list_has_a_child_of_any_name_and_its_parent),
		TEST(list_appends),
		TEST(none_descends_from_no_roots),
		TEST(descent_in_a_circle_ends),
		TEST(a_process_that_is_not_listed_descends_from_itself_alone),
		TEST(a_grandchild_descends_and_a_parent_does_not),
		TEST(the_longest_line_of_descent_is_followed_to_its_end),
		TEST(threads_are_none_if_they_cannot_be_counted),
		TEST(there_are_at_least_as_many_threads_as_processes),
		TEST(children_are_those_of_all_threads),
		cmocka_unit_test(process_strings_are_split_at_each_nul),
		cmocka_unit_test(process_strings_end_without_a_nul_too),
		cmocka_unit_test(process_strings_may_be_empty),
		cmocka_unit_test(process_strings_keep_any_bytes),
		cmocka_unit_test(process_strings_are_bounded_in_number),
		cmocka_unit_test(process_strings_are_those_of_the_process),
		cmocka_unit_test(process_text_has_no_secrets),
		cmocka_unit_test(process_text_replaces_a_secret_that_is_cut_off),
		cmocka_unit_test(process_strings_may_be_long),
		cmocka_unit_test(process_strings_of_an_empty_environment_are_none),
		cmocka_unit_test(process_strings_are_there_when_the_first_thread_has_ended),
		STRINGS_TEST(process_strings_are_bounded_in_bytes),
		STRINGS_TEST(process_strings_of_no_process_are_an_error_for_debugging),
		PID_SET_TEST(free_accepts_null),
		PID_SET_TEST(those_that_live_stay),
		PID_SET_TEST(those_that_ended_go_with_a_word),
		PID_SET_TEST(of_the_last_one_the_caller_speaks),
		PID_SET_TEST(one_that_does_not_exist_is_refused),
		PID_SET_TEST(without_descriptors_its_number_is_asked),
		PID_SET_TEST(one_whose_first_thread_ended_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
