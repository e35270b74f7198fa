/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "commands/validate_trace.h"

#define EVENT                                                                                      \
	"{\"name\":\"futex\",\"cat\":\"syscall\",\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":3,"       \
	"\"tid\":4}"

static int check(const char *text, size_t size, struct trace_facts *facts, char error[256])
{
	FILE *in = tmpfile();
	int err;

	assert_non_null(in);
	fwrite(text, 1, size, in);
	rewind(in);
	error[0] = '\0';
	err = validate_trace(in, false, facts, error, 256);
	fclose(in);
	return err;
}

static void expect_refused(const char *text, const char *reason)
{
	struct trace_facts facts;
	char error[256];

	assert_int_equal(check(text, strlen(text), &facts, error), -EBADMSG);
	assert_true(facts.is_trace);
	assert_string_equal(error, reason);
}

static void expect_sound(const char *text, uint64_t count)
{
	struct trace_facts facts;
	char error[256];

	if (check(text, strlen(text), &facts, error))
		fail_msg("%s", error);
	assert_true(facts.is_trace);
	assert_int_equal(facts.events, count);
}

static void expect_no_trace(const char *text)
{
	struct trace_facts facts;
	char error[256];

	assert_int_equal(check(text, strlen(text), &facts, error), 0);
	assert_false(facts.is_trace);
}

static void trace_names_the_missing_field(void **state)
{
	expect_refused("[" EVENT ",{}]", "event 2: missing field `name`");
	expect_refused("[{\"name\":\"\",\"cat\":\"\",\"ph\":\"X\",\"dur\":1}]",
		       "event 1: missing field `ts`");
}

static void trace_needs_every_field(void **state)
{
	static const char *const fields[] = {"name", "cat", "ph", "ts", "dur", "pid", "tid"};
	char text[128], message[64], *at;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		/* Renames the field, so that it is missing. */
		strcpy(text, "[" EVENT "]");
		snprintf(message, sizeof(message), "\"%s\":", fields[i]);
		at = strstr(text, message);
		assert_non_null(at);
		at[1] = '_';
		snprintf(message, sizeof(message), "event 1: missing field `%s`", fields[i]);
		expect_refused(text, message);
	}
}

static void trace_refuses_wrong_types_in_serdes_words(void **state)
{
	expect_refused("[1]", "event 1: expected an event, found 1");
	expect_refused("[{\"name\":null}]", "event 1: expected a string, found null");
	expect_refused("[{\"ph\":\"XY\"}]", "event 1: expected a character, found \"XY\"");
	expect_refused("[{\"ph\":\"\"}]", "event 1: expected a character, found \"\"");
	expect_refused("[{\"ts\":1.5}]", "event 1: expected u64, found 1.5");
	expect_refused("[{\"dur\":-1}]", "event 1: expected u64, found -1");
	expect_refused("[{\"ts\":-0}]", "event 1: expected u64, found -0");
	expect_refused("[{\"pid\":-0}]", "event 1: expected u32, found -0");
	expect_refused("[{\"pid\":4294967296}]", "event 1: expected u32, found 4294967296");
	expect_refused("[{\"tid\":\"1\"}]", "event 1: expected u32, found \"1\"");
	expect_refused("[{\"args\":null}]", "event 1: expected a map, found null");
}

static void trace_refuses_a_list_that_is_cut_off(void **state)
{
	expect_refused("[", "invalid JSON: EOF while parsing a value at byte 2");
	expect_refused("[" EVENT, "invalid JSON: EOF while parsing a value at byte 74");
	expect_refused("[" EVENT ",{\"na", "invalid JSON: EOF while parsing a value at byte 79");
	expect_refused("{\"traceEvents\":[]", "invalid JSON: EOF while parsing a value at byte 18");
}

static void trace_refuses_what_stands_after_its_end(void **state)
{
	expect_refused("[]\n[]", "invalid JSON: trailing characters at byte 4");
	expect_refused("{\"traceEvents\":[]} 1", "invalid JSON: trailing characters at byte 20");
}

static void trace_refuses_bad_separators(void **state)
{
	expect_refused("[" EVENT " " EVENT "]", "invalid JSON: expected `,` or `]` at byte 75");
	expect_refused("[" EVENT ",]", "invalid JSON: expected value at byte 75");
}

static void trace_refuses_what_only_json_c_takes(void **state)
{
	expect_refused("[{\"ts\":NaN}]", "invalid JSON: expected value at byte 8");
	expect_refused("[{\"a\":\"\xff\"}]", "invalid JSON: invalid UTF-8 at byte 8");
}

static void trace_refuses_nul_bytes(void **state)
{
	static const char text[] = "[\0]";
	struct trace_facts facts;
	char error[256];

	assert_int_equal(check(text, 3, &facts, error), -EBADMSG);
	assert_string_equal(error, "invalid JSON: expected value at byte 2");
}

#define CALL(id)                                                                                   \
	"{\"name\":\"cudaLaunchKernel\",\"cat\":\"cuda_runtime\",\"ph\":\"X\",\"ts\":1.5,\"dur\":" \
	"2,"                                                                                       \
	"\"pid\":3,\"tid\":4,\"args\":{\"correlation\":" #id "}}"

/* A trace of this tool must keep more rules than names and phases; other tools' traces need not. */
static void kineto_trace_of_ours_keeps_its_rules(void **state)
{
	expect_sound("{\"ferrum.mono_base_ns\":1,\"traceEvents\":[" CALL(5) "," CALL(6) "]}", 2);
	expect_refused("{\"ferrum.mono_base_ns\":1,\"traceEvents\":[" CALL(5) "," CALL(5) "]}",
		       "event 2: correlation 5 is on two host events");
	expect_refused(
		"{\"ferrum.mono_base_ns\":1,\"traceEvents\":[{\"name\":\"\",\"ph\":\"s\","
		"\"cat\":\"ac2g\",\"id\":7,\"ts\":1,\"pid\":1,\"tid\":1}],\"traceName\":\"\"}",
		"arrow 7 begins and does not end");
	expect_sound("{\"schemaVersion\":1,\"traceEvents\":[" CALL(5) "," CALL(5) "]}", 2);
	/* A duplicate member does not make it two files. */
	expect_sound("{\"ferrum.mono_base_ns\":1,\"ferrum.mono_base_ns\":1,\"traceEvents\":[]}", 0);
	expect_no_trace("{\"ferrum.mono_base_ns\":1}");
}

static void trace_of_another_tool_needs_names_and_phases(void **state)
{
	expect_refused("{\"traceEvents\":{}}", "traceEvents must be an array");
	expect_refused("{\"traceEvents\":[1]}", "event 1: expected a map, found 1");
	expect_refused("{\"traceEvents\":[{\"ph\":\"M\"}]}", "event 1: missing field `name`");
	expect_refused("{\"traceEvents\":[{\"ph\":1,\"name\":\"\"}]}",
		       "event 1: expected a string, found 1");
	expect_refused("{\"traceEvents\":[],1:2}", "invalid JSON: key must be a string at byte 19");
}

static void trace_is_an_array_or_has_trace_events(void **state)
{
	expect_no_trace("");
	expect_no_trace("{}");
	expect_no_trace("{\"event\":\"step_prof\"}\n{\"event\":\"window_prof\"}");
	expect_no_trace("{broken");
	expect_no_trace("1");
}

static void trace_takes_the_seeds_form(void **state)
{
	expect_sound("[]", 0);
	expect_sound(" [" EVENT "]\n", 1);
	expect_sound("[" EVENT ",\n" EVENT "]", 2);
	expect_sound("[{\"tid\":4294967295,\"pid\":0,\"dur\":18446744073709551615,\"ts\":0,"
		     "\"ph\":\"é\",\"cat\":\"\",\"name\":\"\",\"extra\":[],\"args\":{\"a\":1.5}}]",
		     1);
}

static void trace_takes_the_object_form(void **state)
{
	expect_sound("{\"schemaVersion\":1,\"x\":{\"y\":[]},\"traceEvents\":[{\"name\":\"a\","
		     "\"ph\":\"s\",\"ts\":1.5}],\"displayTimeUnit\":\"ms\"}",
		     1);
}

static void trace_is_checked_across_block_borders(void **state)
{
	const size_t count = 5000;
	const size_t length = strlen(EVENT) + 1;
	char *text = malloc(count * length + 2);
	char *at = text;

	*at++ = '[';
	for (size_t i = 0; i < count; i++) {
		memcpy(at, EVENT ",", length);
		at += length;
	}
	at[-1] = ']';
	*at = '\0';
	expect_sound(text, count);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace_names_the_missing_field),
		cmocka_unit_test(trace_needs_every_field),
		cmocka_unit_test(trace_refuses_wrong_types_in_serdes_words),
		cmocka_unit_test(trace_refuses_a_list_that_is_cut_off),
		cmocka_unit_test(trace_refuses_what_stands_after_its_end),
		cmocka_unit_test(trace_refuses_bad_separators),
		cmocka_unit_test(trace_refuses_what_only_json_c_takes),
		cmocka_unit_test(trace_refuses_nul_bytes),
		cmocka_unit_test(kineto_trace_of_ours_keeps_its_rules),
		cmocka_unit_test(trace_of_another_tool_needs_names_and_phases),
		cmocka_unit_test(trace_is_an_array_or_has_trace_events),
		cmocka_unit_test(trace_takes_the_seeds_form),
		cmocka_unit_test(trace_takes_the_object_form),
		cmocka_unit_test(trace_is_checked_across_block_borders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
