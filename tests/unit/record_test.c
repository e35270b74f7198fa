/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record_keeper.h"

/* No process has this id: it is above the kernel's highest. */
#define NOBODY (1u << 22)

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct record_keeper));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void target_that_is_gone_has_empty_strings(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const struct fbt_target *target;

	assert_int_equal(record_send_target(&output, NOBODY, 7, 99), 0);
	target = kept(keeper, 0, FBT_EVENT_TARGET);
	assert_int_equal(target->header.size, sizeof(*target) + 8);
	assert_int_equal(target->tgid, NOBODY);
	assert_int_equal(target->parent_tgid, 7);
	assert_int_equal(target->start_ns, 99);
	for (int i = 0; i < 3; i++)
		assert_string_equal(kept_string(target, sizeof(*target), i), "");
}

static void thread_that_is_gone_sends_nothing(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);

	record_send_thread(&output, (uint32_t)getpid(), NOBODY);
	record_send_thread(&output, NOBODY, NOBODY);
	assert_int_equal(keeper->count, 0);
}

static void strings_that_are_null_are_empty(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const char *strings[] = {NULL, "b", NULL};
	struct fbt_kind kind = {0};
	const struct fbt_kind *sent;

	assert_int_equal(
		record_send_strings(&output, &kind, sizeof(kind), FBT_EVENT_KIND, strings, 3), 0);
	sent = kept(keeper, 0, FBT_EVENT_KIND);
	assert_int_equal(sent->header.size, sizeof(kind) + 8);
	assert_string_equal(kept_string(sent, sizeof(kind), 0), "");
	assert_string_equal(kept_string(sent, sizeof(kind), 1), "b");
	assert_string_equal(kept_string(sent, sizeof(kind), 2), "");
}

static void strings_of_more_than_4096_bytes_are_cut_off(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	char *text = malloc(6000);
	const char *strings[] = {text, "next"};
	struct fbt_kind kind = {0};
	const struct fbt_kind *sent;

	assert_non_null(text);
	memset(text, 'x', 5999);
	text[5999] = '\0';
	assert_int_equal(
		record_send_strings(&output, &kind, sizeof(kind), FBT_EVENT_KIND, strings, 2), 0);
	free(text);
	sent = kept(keeper, 0, FBT_EVENT_KIND);
	assert_int_equal(strlen(kept_string(sent, sizeof(kind), 0)), 4096);
	assert_string_equal(kept_string(sent, sizeof(kind), 1), "next");
}

static void strings_end_on_a_multiple_of_eight_with_zeroes(void **state)
{
	static const char zeroes[8];
	struct record_output output = keeper_output(*state);

	for (size_t length = 0; length < 17; length++) {
		struct record_keeper *keeper = *state;
		char text[32] = "";
		const char *strings[] = {text};
		struct fbt_kind kind = {0};
		const struct fbt_kind *sent;

		memset(text, 'x', length);
		keeper->size = keeper->count = 0;
		memset(keeper->bytes, 0xff, 256);
		record_send_strings(&output, &kind, sizeof(kind), FBT_EVENT_KIND, strings, 1);
		sent = kept(keeper, 0, FBT_EVENT_KIND);
		assert_int_equal(sent->header.size, sizeof(kind) + (length + 1 + 7) / 8 * 8);
		assert_int_equal(sent->header.size, keeper->size);
		assert_memory_equal((const char *)sent + sizeof(kind) + length, zeroes,
				    sent->header.size - sizeof(kind) - length);
	}
}

static void send_fills_type_and_size_and_leaves_the_flags(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	struct fbt_step step = {.header.flags = FBT_STEP_NO_GAP, .tid = 5};
	const struct fbt_step *sent;

	record_send(&output, &step, sizeof(step), FBT_EVENT_STEP);
	sent = kept(keeper, 0, FBT_EVENT_STEP);
	assert_int_equal(sent->header.size, sizeof(step));
	assert_int_equal(sent->header.flags, FBT_STEP_NO_GAP);
	assert_int_equal(sent->tid, 5);
}

static void window_names_tag_version_kernel_and_host(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	struct fbt_window window = {.start_ns = 3};
	const struct fbt_window *sent;
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(record_send_window(&output, &window, "pid7_1"), 0);
	sent = kept(keeper, 0, FBT_EVENT_WINDOW);
	assert_int_equal(sent->start_ns, 3);
	assert_string_equal(kept_string(sent, sizeof(window), 0), "pid7_1");
	assert_string_equal(kept_string(sent, sizeof(window), 1), FBT_VERSION);
	assert_string_equal(kept_string(sent, sizeof(window), 2), name.release);
	assert_string_equal(kept_string(sent, sizeof(window), 3), name.nodename);
}

/* A sleeping child with these arguments; it runs once its command line is theirs. */
static pid_t start_sleep(const char *name)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execlp("sleep", name, "600", NULL);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

static void target_has_name_path_and_arguments_joined_by_spaces(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	pid_t pid = start_sleep("my engine");
	const struct fbt_target *target;
	char path[64], exe[4096];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	length = readlink(path, exe, sizeof(exe) - 1);
	assert_true(length > 0);
	exe[length] = '\0';
	assert_int_equal(record_send_target(&output, (uint32_t)pid, 0, 1), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	target = kept(keeper, 0, FBT_EVENT_TARGET);
	assert_string_equal(kept_string(target, sizeof(*target), 0), "sleep");
	assert_string_equal(kept_string(target, sizeof(*target), 1), exe);
	assert_string_equal(kept_string(target, sizeof(*target), 2), "my engine 600");
}

static void thread_name_of_fifteen_bytes_is_whole(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const struct fbt_thread_name *name;
	char before[16];

	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, "fifteen bytes !");
	record_send_thread(&output, (uint32_t)getpid(), (uint32_t)gettid());
	prctl(PR_SET_NAME, before);
	name = kept(keeper, 0, FBT_EVENT_THREAD);
	assert_int_equal(name->header.size, sizeof(*name));
	assert_int_equal(name->tgid, getpid());
	assert_int_equal(name->tid, gettid());
	assert_string_equal(name->comm, "fifteen bytes !");
}

static void a_wish_for_an_escalation_has_its_time(void **state)
{
	struct record_keeper *keeper = *state;
	struct record_output output = keeper_output(keeper);
	const struct fbt_manual *manual;

	record_send_manual(&output, 77);
	manual = kept(keeper, 0, FBT_EVENT_MANUAL);
	assert_int_equal(manual->header.size, sizeof(*manual));
	assert_int_equal(manual->time_ns, 77);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(target_that_is_gone_has_empty_strings),
		TEST(thread_that_is_gone_sends_nothing),
		TEST(strings_that_are_null_are_empty),
		TEST(strings_of_more_than_4096_bytes_are_cut_off),
		TEST(strings_end_on_a_multiple_of_eight_with_zeroes),
		TEST(send_fills_type_and_size_and_leaves_the_flags),
		TEST(window_names_tag_version_kernel_and_host),
		TEST(target_has_name_path_and_arguments_joined_by_spaces),
		TEST(thread_name_of_fifteen_bytes_is_whole),
		TEST(a_wish_for_an_escalation_has_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
