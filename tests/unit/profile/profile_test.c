/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

#define EVENT(name, shape)                                                                         \
	"{\"event\":\"" name "\",\"shape\":" shape                                                 \
	",\"stage_us\":{\"total\":7},\"source\":\"ferrum-bpftrace\"}\n"

struct seen {
	int events;
	uint64_t steps;
	uint64_t total;
	int fail;
};

static int take(void *ctx, const struct profile_event *event)
{
	struct seen *seen = ctx;
	uint64_t step = 0, total = 0;

	seen->events++;
	if (profile_uint(event->shape, "step", &step))
		seen->steps += step;
	if (profile_uint(event->stage_us, "total", &total))
		seen->total += total;
	return seen->fail;
}

static bool wants_steps(const char *name)
{
	return !strcmp(name, "step_prof");
}

static int read_text(const char *text, size_t size, bool (*wants)(const char *name),
		     struct seen *seen, struct profile_counts *counts)
{
	const struct profile_reader reader = {wants, take, seen};
	FILE *in = size ? fmemopen((void *)text, size, "r") : fopen("/dev/null", "r");
	int err;

	assert_non_null(in);
	err = profile_read(in, "test", &reader, counts);
	fclose(in);
	return err;
}

static void test_events(void **unused)
{
	static const char text[] = EVENT("step_prof", "{\"step\":1}")
		EVENT("other_prof", "{\"step\":100}") EVENT("step_prof", "{\"step\":2}");
	struct seen seen = {0};
	struct profile_counts counts;

	assert_int_equal(read_text(text, strlen(text), wants_steps, &seen, &counts), 0);
	assert_int_equal(seen.events, 2);
	assert_int_equal(seen.steps, 3);
	assert_int_equal(seen.total, 14);
	assert_int_equal(counts.lines, 3);
	assert_int_equal(counts.bad + counts.foreign, 0);
	assert_false(counts.is_cut);
}

/* Members in another order, and other programs' events. */
static void test_foreign(void **unused)
{
	static const char text[] =
		"{\"source\":\"ferrum-bpftrace\",\"stage_us\":{\"total\":7},\"shape\":{\"step\":4},"
		"\"event\":\"step_prof\"}\n"
		"{\"event\":\"step_prof\",\"shape\":{\"step\":50},\"stage_us\":{}}\n"
		"{\"event\":\"step_prof\",\"shape\":[],\"stage_us\":{},\"source\":\"ferrum-"
		"bpftrace\"}\n"
		"{\"event\":\"step_prof\",\"shape\":{},\"stage_us\":3,\"source\":\"ferrum-"
		"bpftrace\"}\n"
		"{\"event\":7,\"shape\":{},\"stage_us\":{},\"source\":\"ferrum-bpftrace\"}\n"
		"[1]\n7\n\n";
	struct seen seen = {0};
	struct profile_counts counts;

	assert_int_equal(read_text(text, strlen(text), wants_steps, &seen, &counts), 0);
	assert_int_equal(seen.events, 1);
	assert_int_equal(seen.steps, 4);
	assert_int_equal(counts.foreign, 6);
	assert_int_equal(counts.bad, 0);
}

static void test_bad(void **unused)
{
	static const char text[] =
		"{\"event\":\"step_prof\",\n" EVENT("step_prof", "{\"step\":1}") //
		"\xff\xfe\n{\"event\":\"step_prof\",\"sha";
	struct seen seen = {0};
	struct profile_counts counts;

	assert_int_equal(read_text(text, strlen(text), NULL, &seen, &counts), 0);
	assert_int_equal(seen.events, 1);
	assert_int_equal(counts.bad, 2);
	assert_int_equal(counts.first_bad, 1);
	assert_true(*counts.error);
	assert_true(counts.is_cut);
}

static void test_long_line(void **unused)
{
	size_t size = 3u << 20;
	char *text = malloc(size);
	struct seen seen = {0};
	struct profile_counts counts;
	static const char end[] = "\n" EVENT("step_prof", "{\"step\":1}");

	assert_non_null(text);
	memset(text, '[', size);
	memcpy(text + size - strlen(end), end, strlen(end));
	assert_int_equal(read_text(text, size, NULL, &seen, &counts), 0);
	assert_int_equal(counts.bad, 1);
	assert_int_equal(seen.events, 1);
	free(text);
}

static void test_failure(void **unused)
{
	static const char text[] = EVENT("step_prof", "{}") EVENT("step_prof", "{}");
	struct seen seen = {.fail = -ENOMEM};
	struct profile_counts counts;

	assert_int_equal(read_text(text, strlen(text), NULL, &seen, &counts), -ENOMEM);
	assert_int_equal(seen.events, 1);
	assert_int_equal(read_text(text, 0, NULL, &seen, &counts), 0);
	assert_int_equal(counts.lines, 0);
}

static void test_members(void **unused)
{
	struct json_object *object = json_tokener_parse(
		"{\"u\":7,\"n\":-7,\"big\":18446744073709551615,\"d\":1.5,\"s\":\"x\","
		"\"z\":\"a\\u0000b\",\"t\":true,\"null\":null}");
	uint64_t u = 1;
	int64_t n = 1;
	double d = 1;
	bool t = false;

	assert_true(profile_uint(object, "u", &u) && u == 7);
	assert_false(profile_uint(object, "n", &u));
	assert_false(profile_uint(object, "d", &u));
	assert_false(profile_uint(object, "s", &u));
	assert_false(profile_uint(object, "null", &u));
	assert_false(profile_uint(object, "none", &u));
	assert_int_equal(u, 7);
	assert_true(profile_uint(object, "big", &u) && u == UINT64_MAX);
	assert_true(profile_int(object, "n", &n) && n == -7);
	assert_true(profile_double(object, "d", &d) && d == 1.5);
	assert_true(profile_double(object, "u", &d) && d == 7);
	assert_false(profile_double(object, "s", &d));
	assert_true(profile_bool(object, "t", &t) && t);
	assert_false(profile_bool(object, "u", &t));
	assert_string_equal(profile_string(object, "s"), "x");
	assert_null(profile_string(object, "z"));
	assert_null(profile_string(object, "u"));
	json_object_put(object);
}

static void test_begin(void **unused)
{
	assert_true(profile_is_begin("{\"event\":\"x", 11));
	assert_false(profile_is_begin("{\"event\":\"", 5));
	assert_false(profile_is_begin("[{\"event\":\"", 11));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),	cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_bad),	cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_failure), cmocka_unit_test(test_members),
		cmocka_unit_test(test_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
