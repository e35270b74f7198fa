/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "dir_fixture.h"
#include "metrics/metrics.h"
#include "watch/slots.h"

#define OWN UINT32_C(0xffffffff)

/* As a tracer: has it written that it runs, and ended or not. */
static void trace(const char *name, bool ends)
{
	char path[256];
	const struct metrics_options options = {.path = path, .interval_ns = 1};
	struct metrics *metrics;

	snprintf(path, sizeof(path), "%s", path_of(name));
	metrics = metrics__new(&options);
	assert_non_null(metrics);
	metrics__poll(metrics);
	if (ends)
		assert_int_equal(metrics__end(metrics), 0);
	metrics__free(metrics);
}

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void sweep(uint32_t used, uint32_t own)
{
	char path[256];

	snprintf(path, sizeof(path), "%s", path_of("llm.prom"));
	slots_sweep(path, used, own);
}

/* As if it was written so long ago. */
static void set_age(const char *name, time_t seconds)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
					  {.tv_sec = time(NULL) - seconds}};

	assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

static void each_slot_has_a_file(void **state)
{
	char *first = slot_path("/a/llm.prom", 1), *second = slot_path("/a/llm.prom", 2);

	assert_string_equal(first, "/a/llm.prom");
	assert_string_equal(second, "/a/llm_2.prom");
	free(first);
	free(second);
}

static void the_lowest_free_slot_is_chosen(void **state)
{
	assert_int_equal(slot_choose(0), 1);
	assert_int_equal(slot_choose(1 << 1 | 1 << 3), 2);
	assert_int_equal(slot_choose(0xffff), 16);
	assert_int_equal(slot_choose(0x1fffe), 0);
}

static void files_of_killed_tracers_are_deleted(void **state)
{
	trace("llm.prom", false);
	trace("llm_2.prom", false);
	trace("llm_16.prom", false);
	sweep(1 << 1, OWN);
	assert_true(is_there("llm.prom"));
	assert_false(is_there("llm_2.prom"));
	assert_false(is_there("llm_16.prom"));
	sweep(0, OWN);
	assert_false(is_there("llm.prom"));
}

/* A tracer that was started by hand writes it again; that of a watch that was killed stays as old.
 */
static void a_file_that_is_not_own_is_deleted_once_it_is_old(void **state)
{
	trace("llm.prom", false);
	trace("llm_2.prom", false);
	sweep(0, 1 << 1);
	assert_false(is_there("llm.prom"));
	assert_true(is_there("llm_2.prom"));
	set_age("llm_2.prom", SLOT_OLD_S - 10);
	sweep(0, 0);
	assert_true(is_there("llm_2.prom"));
	set_age("llm_2.prom", SLOT_OLD_S + 1);
	sweep(1 << 2, 0);
	assert_true(is_there("llm_2.prom"));
	sweep(0, 0);
	assert_false(is_there("llm_2.prom"));
}

static void a_tracer_that_has_ended_keeps_its_file(void **state)
{
	trace("llm.prom", true);
	trace("llm_2.prom", true);
	sweep(0, OWN);
	assert_true(is_there("llm.prom"));
	assert_true(is_there("llm_2.prom"));
}

static void nothing_else_is_deleted(void **state)
{
	char target[256];

	trace("llm_17.prom", false);
	trace("other.prom", false);
	snprintf(target, sizeof(target), "%s", path_of("other.prom"));
	assert_int_equal(symlink(target, path_of("llm_2.prom")), 0);
	write_text("llm_3.prom", "ferrum_bpftrace_up{tracer=\"llm_3\"} 1\n");
	write_text("llm_4.prom", "");
	trace("hard.prom", false);
	snprintf(target, sizeof(target), "%s", path_of("hard.prom"));
	assert_int_equal(link(target, path_of("llm_5.prom")), 0);
	assert_int_equal(mkfifo(path_of("llm_6.prom"), 0600), 0);
	trace("llm_7.prom", false);
	if (!geteuid())
		assert_int_equal(chown(path_of("llm_7.prom"), 12345, 12345), 0);
	sweep(0, OWN);
	assert_true(is_there("llm_17.prom"));
	assert_true(is_there("other.prom"));
	assert_true(is_there("llm_2.prom"));
	assert_true(is_there("llm_3.prom"));
	assert_true(is_there("llm_4.prom"));
	assert_true(is_there("llm_5.prom"));
	assert_true(is_there("llm_6.prom"));
	assert_int_equal(is_there("llm_7.prom"), !geteuid());
	slots_sweep(NULL, 0, OWN);
}

/* A folder that is missing and cannot be made is told by the tracers, not for each slot. */
static void a_folder_that_cannot_be_opened_is_passed_over_in_silence(void **state)
{
	char path[256];

	write_text("file", "");
	snprintf(path, sizeof(path), "%s", path_of("file/llm.prom"));
	slots_sweep(path, 0, OWN);
	assert_silent(*state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(each_slot_has_a_file),
		TEST(the_lowest_free_slot_is_chosen),
		TEST(files_of_killed_tracers_are_deleted),
		TEST(a_file_that_is_not_own_is_deleted_once_it_is_old),
		TEST(a_tracer_that_has_ended_keeps_its_file),
		TEST(nothing_else_is_deleted),
		TEST(a_folder_that_cannot_be_opened_is_passed_over_in_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
