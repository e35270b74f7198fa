/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "option_parse.h"
#include "stderr_fixture.h"

static char path[64];

static int make_file(void **state)
{
	int fd;

	strcpy(path, "/tmp/fbt_config_XXXXXX");
	fd = mkstemp(path);
	close(fd);
	return fd < 0 ? -1 : stderr_setup(state);
}

static int remove_file(void **state)
{
	unlink(path);
	return stderr_teardown(state);
}

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Parses "watch --config FILE" and up to two more words. */
static int parse(struct options *options, const char *text, char *more, char *last)
{
	char *argv[] = {"ferrum-bpftrace", "watch", "--config", path, more, last, NULL};

	write_file(text);
	return options_parse(options, 4 + (more != NULL) + (last != NULL), argv);
}

static void a_file_says_what_options_say(void **state)
{
	struct options options;

	assert_int_equal(parse(&options,
			       "# of the night shift\n"
			       "\n"
			       "comm = llama-server\n"
			       "  comm=vllm   # two of them\n"
			       "unit\t=\tllm.service\r\n"
			       "last = 2m\n"
			       "memory = 128M\n"
			       "cooldown = 90\n"
			       "max-dumps = 3\n"
			       "step = engine#step\n"
			       "inject\n"
			       "metrics = /var/lib/x/llm.prom\n"
			       "dir = /var/tmp",
			       NULL, NULL),
			 0);
	assert_int_equal(options.mode, MODE_WATCH);
	assert_int_equal(options.watch.comms.count, 2);
	assert_string_equal(options.watch.comms.items[0], "llama-server");
	assert_string_equal(options.watch.comms.items[1], "vllm");
	assert_string_equal(options.watch.units.items[0], "llm.service");
	assert_int_equal(options.watch.last_ns, 120 * NS_PER_S);
	assert_int_equal(options.watch.memory, 128 << 20);
	assert_int_equal(options.watch.cooldown_ns, 90 * NS_PER_S);
	assert_int_equal(options.watch.max_dumps, 3);
	assert_string_equal(options.windows.dir, "/var/tmp");
	assert_true(options.inject);
	/* Each tracer has a file of its own. */
	assert_string_equal(options.metrics, "/var/lib/x/llm.prom");
	/* Tracers get what is not about watch. */
	assert_int_equal(options.watch.given.count, 2);
	assert_string_equal(options.watch.given.items[0].name, "step");
	assert_string_equal(options.watch.given.items[0].value, "engine#step");
	assert_string_equal(options.watch.given.items[1].name, "inject");
	assert_null(options.watch.given.items[1].value);
	options_clear(&options);
	assert_silent(*state);
}

static void the_command_line_takes_precedence(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "comm = a\nlast = 2m\n", "--last=3m", "--hang=4"), 0);
	assert_int_equal(options.watch.last_ns, 180 * NS_PER_S);
	assert_int_equal(options.watch.given.count, 1);
	assert_string_equal(options.watch.given.items[0].name, "hang");
	options_clear(&options);
}

/* Its tracers wait anyway, and those of system calls, which may have no --step, have found it. */
static void wait_step_is_not_passed_on(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "comm = a\nwait-step\n", "--hang=4", NULL), 0);
	assert_int_equal(options.watch.given.count, 1);
	assert_string_equal(options.watch.given.items[0].name, "hang");
	options_clear(&options);
}

static void assert_bad(void **state, const char *text, const char *said)
{
	char line[256];
	struct options options;

	snprintf(line, sizeof(line), "%s%s", path, said);
	assert_int_equal(parse(&options, text, NULL, NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, line);
}

static void an_unknown_name_is_told_with_its_line(void **state)
{
	assert_bad(state, "comm = a\n\ncooldwn = 5\n",
		   ":3: unknown option 'cooldwn': did you mean cooldown?");
}

static void a_bad_value_is_told_with_its_line(void **state)
{
	assert_bad(state, "comm = a\nlast = soon\n", ":2: last: invalid value 'soon'");
}

static void too_little_memory_is_told(void **state)
{
	assert_bad(state, "memory = 1M", ":1: memory: invalid value '1M' (expected 32M or more)");
}

static void a_missing_value_is_told(void **state)
{
	assert_bad(state, "last", ":1: last: TIME is missing: last = ...");
}

static void a_value_of_a_switch_is_told(void **state)
{
	assert_bad(state, "inject = yes", ":1: inject takes no value");
}

static void a_missing_name_is_told(void **state)
{
	assert_bad(state, "\n = 5", ":2: the name of an option is missing");
}

static void what_watch_decides_is_refused(void **state)
{
	assert_bad(state, "detail = all", ":1: detail is no option of watch");
}

/* Its tracers time steps only, and would refuse to start. */
static void intervals_are_refused(void **state)
{
	assert_bad(state, "comm = a\ninterval = 50ms\n", ":2: interval is no option of watch");
}

static void intervals_are_refused_on_the_command_line(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "comm = a\n", "--interval=50ms", NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "watch takes no --interval");
}

static void what_is_for_windows_by_flag_is_refused(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "comm = a\n", "--max-steps=5", NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "watch takes no --max-steps");
}

static void reports_are_refused(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "comm = a\n", "--report=json", NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "watch takes no --report");
}

static void torch_traces_are_refused(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "comm = a\n", "--torch-trace", NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "watch takes no --torch-trace");
}

static void a_missing_file_is_told(void **state)
{
	char *argv[] = {"ferrum-bpftrace", "watch", "--config=/nonexistent/x.conf"};
	struct options options;

	assert_int_equal(options_parse(&options, 3, argv), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "/nonexistent/x.conf: No such file or directory");
}

/* The parser of options takes it for --config: then the file must be the one that is read. */
static void a_shortened_name_reads_the_same_file(void **state)
{
	char *argv[] = {"ferrum-bpftrace", "watch", "--conf", path};
	struct options options;

	(void)state;
	write_file("comm = llama-server\n");
	assert_int_equal(options_parse(&options, 4, argv), 0);
	assert_string_equal(options.watch.comms.items[0], "llama-server");
	options_clear(&options);
}

static void a_file_that_others_may_write_is_refused(void **state)
{
	struct options options;

	if (geteuid())
		skip();
	write_file("comm = a\n");
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(parse(&options, "comm = a\n", NULL, NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, ": others may write to it: chmod go-w it");
}

static void a_directory_is_refused(void **state)
{
	char *argv[] = {"ferrum-bpftrace", "watch", "--config", "/tmp"};
	struct options options;

	assert_int_equal(options_parse(&options, 4, argv), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "/tmp: not a regular file");
}

static void nothing_to_watch_is_refused(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "last = 2m\n", NULL, NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "nothing to watch");
}

static void a_dump_has_the_step_that_it_is_about(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, "comm = a\nlast = 5s\n", "--after=4", NULL), 0);
	options_clear(&options);
	assert_int_equal(parse(&options, "comm = a\nlast = 5s\n", "--after=5", NULL), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "make --last longer than --after");
}

static void watch_comes_first(void **state)
{
	char *argv[] = {"ferrum-bpftrace", "-p", "1", "watch"};
	struct options options;

	assert_int_equal(options_parse(&options, 4, argv), -EINVAL);
	options_clear(&options);
	assert_one_line(*state, "watch must come first");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)
	const struct CMUnitTest tests[] = {
		TEST(a_file_says_what_options_say),
		TEST(the_command_line_takes_precedence),
		TEST(wait_step_is_not_passed_on),
		TEST(an_unknown_name_is_told_with_its_line),
		TEST(a_bad_value_is_told_with_its_line),
		TEST(too_little_memory_is_told),
		TEST(a_missing_value_is_told),
		TEST(a_value_of_a_switch_is_told),
		TEST(a_missing_name_is_told),
		TEST(what_watch_decides_is_refused),
		TEST(intervals_are_refused),
		TEST(intervals_are_refused_on_the_command_line),
		TEST(what_is_for_windows_by_flag_is_refused),
		TEST(reports_are_refused),
		TEST(torch_traces_are_refused),
		TEST(a_missing_file_is_told),
		TEST(a_shortened_name_reads_the_same_file),
		TEST(a_file_that_others_may_write_is_refused),
		TEST(a_directory_is_refused),
		TEST(nothing_to_watch_is_refused),
		TEST(a_dump_has_the_step_that_it_is_about),
		TEST(watch_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
