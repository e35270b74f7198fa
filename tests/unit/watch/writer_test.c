/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "stderr_fixture.h"
#include "watch/writer.h"

#define ENGINES 16

static int count_open(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void take(struct writer *writer, int engine, const char *part)
{
	struct dump_job job = {.fd = dup(STDERR_FILENO)};

	snprintf(job.stem, sizeof(job.stem), "%c", 'a' + engine);
	snprintf(job.part, sizeof(job.part), "%s", part);
	writer__take(writer, &job);
}

static void take_all(struct writer *writer, const char *part)
{
	for (int i = 0; i < ENGINES; i++)
		take(writer, i, part);
}

/* In the order in which they wait: of those, none is written, and each is said. */
static void assert_waiting(struct writer *writer, struct stderr_fixture *fixture,
			   const char *expected)
{
	const char *line;
	char stem[16], text[512] = "";
	size_t length = 0;

	assert_string_equal(stderr_text(fixture), "");
	writer__free(writer);
	for (line = strstr(stderr_text(fixture), "dump "); line; line = strstr(line + 1, "dump ")) {
		if (sscanf(line, "dump %15[^:]", stem) == 1)
			length +=
				(size_t)snprintf(text + length, sizeof(text) - length, "%s ", stem);
	}
	assert_string_equal(text, expected);
}

static void parts_wait_for_dumps(void **state)
{
	struct writer *writer = writer__new("/nowhere");

	take(writer, 0, "_sample");
	take(writer, 1, "_sample");
	take(writer, 0, "");
	take(writer, 0, "_calls");
	take(writer, 1, "");
	take(writer, 1, "_calls");
	assert_waiting(writer, *state, "a b a_calls b_calls a_sample b_sample ");
}

/* A stall of the machine: each engine has a sample, and its dump comes --after later. */
static void all_engines_may_dump_at_once(void **state)
{
	struct writer *writer = writer__new("/nowhere");
	int before = count_open();

	take_all(writer, "_sample");
	take_all(writer, "");
	assert_string_equal(stderr_text(*state), "");
	assert_int_equal(count_open(), before + 2 * ENGINES);
	writer__free(writer);
	assert_int_equal(count_open(), before);
}

static void a_sample_makes_way_for_calls(void **state)
{
	struct writer *writer = writer__new("/nowhere");
	int before = count_open();

	take_all(writer, "_sample");
	take(writer, 0, "_calls");
	assert_one_line(*state, "dump p_sample: not written: ");
	assert_int_equal(count_open(), before + ENGINES);
	writer__free(writer);
}

static void there_are_not_ever_more(void **state)
{
	struct writer *writer = writer__new("/nowhere");
	int before = count_open();

	take_all(writer, "");
	take(writer, 0, "");
	assert_one_line(*state, "dump a: not written: too many are waiting");
	assert_int_equal(count_open(), before + ENGINES);
	writer__free(writer);
}

static void calls_do_not_make_way(void **state)
{
	struct writer *writer = writer__new("/nowhere");
	int before = count_open();

	take_all(writer, "_calls");
	take(writer, 0, "_calls");
	assert_one_line(*state, "dump a_calls: not written: too many are waiting");
	assert_int_equal(count_open(), before + ENGINES);
	writer__free(writer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)
	const struct CMUnitTest tests[] = {
		TEST(parts_wait_for_dumps),	    TEST(all_engines_may_dump_at_once),
		TEST(a_sample_makes_way_for_calls), TEST(there_are_not_ever_more),
		TEST(calls_do_not_make_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
