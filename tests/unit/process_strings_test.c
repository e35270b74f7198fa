/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include "log.h"
#include "process_strings.h"
#include "stderr_fixture.h"
#include "target_fixture.h"

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
	/* Before, during and after the end of the first thread. */
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

/* A process that says its environment is all of this text; 0 if the kernel does not let it. */
static pid_t start_liar(const char *text, size_t size)
{
	uintptr_t at = (uintptr_t)text;
	/* What is not the environment must only be in order. */
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
	/* The other one has no end within the bound. */
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_strings_are_split_at_each_nul),
		cmocka_unit_test(process_strings_end_without_a_nul_too),
		cmocka_unit_test(process_strings_may_be_empty),
		cmocka_unit_test(process_strings_keep_any_bytes),
		cmocka_unit_test(process_strings_are_bounded_in_number),
		cmocka_unit_test(process_strings_are_those_of_the_process),
		cmocka_unit_test(process_strings_may_be_long),
		cmocka_unit_test(process_strings_of_an_empty_environment_are_none),
		cmocka_unit_test(process_strings_are_there_when_the_first_thread_has_ended),
		TEST(process_strings_are_bounded_in_bytes),
		TEST(process_strings_of_no_process_are_an_error_for_debugging),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
