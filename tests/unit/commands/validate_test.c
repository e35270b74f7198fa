/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "commands/validate.h"

/* A sound event with VALUE for one field. NULL leaves the field out. */
static char *make_event(const char *field, const char *value)
{
	static const char *const fields[][2] = {
		{"event", "\"unified_prof\""},
		{"commit_sha", "\"abc123\""},
		{"env_hash", "\"sha256:env\""},
		{"model", "\"Qwen/Qwen3-30B-A3B-GPTQ-Int4\""},
		{"concurrency", "32"},
		{"shape", "{\"batch\":32,\"active_blocks\":65}"},
		{"stage_us", "{\"model\":12500.0,\"decode_post\":350.0}"},
		{"graph_enabled", "true"},
		{"runtime_flags", "{\"schema_version\":1,\"entries\":[]}"},
		{"source", "\"server_log\""},
		{"source_line", "\"[unified-prof] model=12500 decode_post=350\""},
	};
	const char *separator = "";
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	putc('{', out);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const char *member = fields[i][1];

		if (field && !strcmp(field, fields[i][0]))
			member = value;
		if (!member)
			continue;
		fprintf(out, "%s\"%s\":%s", separator, fields[i][0], member);
		separator = ",";
	}
	putc('}', out);
	fclose(out);
	return text;
}

/* Validates one file with this text. *said is the output without the file's name. */
static int validate_bytes(const char *text, size_t size, const char *required, char **said)
{
	char path[] = "/tmp/ferrum-profile-test-XXXXXX";
	char *paths[] = {path};
	char *printed = NULL;
	size_t printed_size;
	FILE *out = open_memstream(&printed, &printed_size);
	int fd = mkstemp(path);
	int result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	close(fd);
	result = !validate_files(paths, 1, required, out, out);
	unlink(path);
	fclose(out);
	assert_int_equal(strncmp(printed, path, strlen(path)), 0);
	*said = strdup(printed + strlen(path));
	free(printed);
	return result;
}

static void expect_result(int result, const char *text, const char *required, const char *expected)
{
	char *said;

	assert_int_equal(validate_bytes(text, strlen(text), required, &said), result);
	assert_string_equal(said, expected);
	free(said);
}

static void expect_refused(const char *text, const char *expected)
{
	expect_result(1, text, NULL, expected);
}

static void expect_field_refused(const char *field, const char *value, const char *expected)
{
	char *event = make_event(field, value);
	char message[256];

	snprintf(message, sizeof(message), ": line 1: %s\n", expected);
	expect_refused(event, message);
	free(event);
}

static void expect_field_taken(const char *field, const char *value)
{
	char *event = make_event(field, value);

	expect_result(0, event, NULL, ": 1 event, ok\n");
	free(event);
}

static void profile_names_the_file_that_cannot_be_read(void **state)
{
	char *paths[] = {"/nonexistent/profile.jsonl", "/"};
	char *said = NULL;
	size_t size;
	FILE *out = open_memstream(&said, &size);

	assert_false(validate_files(paths, 2, NULL, out, out));
	fclose(out);
	assert_string_equal(said, "/nonexistent/profile.jsonl: No such file or directory\n"
				  "/: Is a directory\n");
	free(said);
}

static void profile_refuses_every_missing_field(void **state)
{
	static const char *const fields[] = {
		"event", "commit_sha", "env_hash",	"model",	 "concurrency",
		"shape", "stage_us",   "graph_enabled", "runtime_flags",
	};
	char message[64];

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		snprintf(message, sizeof(message), "missing required field: %s", fields[i]);
		expect_field_refused(fields[i], NULL, message);
	}
}

static void profile_names_the_first_missing_field(void **state)
{
	expect_refused("{}", ": line 1: missing required field: event\n");
	expect_refused("{\"event\":1}", ": line 1: missing required field: commit_sha\n");
}

static void profile_refuses_what_is_no_object(void **state)
{
	expect_refused("1", ": line 1: profile event must be a JSON object\n");
	expect_refused("null", ": line 1: profile event must be a JSON object\n");
}

static void profile_keeps_the_seeds_rules_in_its_words(void **state)
{
	expect_field_refused("event", "\" \"", "event must be non-empty");
	expect_field_refused("event", "\"\\u2003\"", "event must be non-empty");
	expect_field_refused("commit_sha", "\"\"", "commit_sha must be non-empty when present");
	expect_field_refused("env_hash", "\"env\"", "env_hash must start with sha256:");
	expect_field_refused("model", "\"\\t\"", "model must be non-empty");
	expect_field_refused("concurrency", "0", "concurrency must be > 0");
	expect_field_refused("runtime_flags", "[]", "runtime_flags must be an object");
	expect_field_refused("runtime_flags", "null", "runtime_flags must be an object");
}

static void profile_refuses_wrong_types_in_serdes_words(void **state)
{
	expect_field_refused("concurrency", "1.5",
			     "invalid profile event: expected u32, found 1.5");
	expect_field_refused("concurrency", "32.0",
			     "invalid profile event: expected u32, found 32.0");
	expect_field_refused("concurrency", "true",
			     "invalid profile event: expected u32, found true");
	expect_field_refused("concurrency", "-1", "invalid profile event: expected u32, found -1");
	expect_field_refused("concurrency", "-0", "invalid profile event: expected u32, found -0");
	expect_field_refused("concurrency", "4294967296",
			     "invalid profile event: expected u32, found 4294967296");
	expect_field_refused("concurrency", "18446744073709551615",
			     "invalid profile event: expected u32, found 18446744073709551615");
	expect_field_refused("shape", "[]",
			     "invalid profile event: expected a map, found a sequence");
	expect_field_refused("stage_us", "null",
			     "invalid profile event: expected a map, found null");
	expect_field_refused("graph_enabled", "\"x\"",
			     "invalid profile event: expected a boolean, found \"x\"");
	expect_field_refused("event", "{}",
			     "invalid profile event: expected a string, found a map");
	expect_field_refused("commit_sha", "1",
			     "invalid profile event: expected a string, found 1");
	expect_field_refused("source", "1", "invalid profile event: expected a string, found 1");
}

static void profile_takes_types_before_rules(void **state)
{
	expect_refused("{\"event\":\"\",\"commit_sha\":null,\"env_hash\":\"\",\"model\":\"\","
		       "\"concurrency\":0,\"shape\":{},\"stage_us\":{},\"graph_enabled\":1,"
		       "\"runtime_flags\":{}}",
		       ": line 1: invalid profile event: expected a boolean, found 1\n");
}

static void profile_refuses_lines_that_are_no_json(void **state)
{
	char *event = make_event(NULL, NULL);
	char *text = NULL;

	assert_true(asprintf(&text, "\n%s\n \r\n{\"event\":NaN}\n%s\n", event, event) > 0);
	expect_refused(text, ": line 4: invalid JSON: expected value at column 10\n");
	free(text);
	free(event);
}

static void profile_refuses_nul_bytes(void **state)
{
	char *said;

	assert_int_equal(validate_bytes("{\0}\n", 4, NULL, &said), 1);
	assert_string_equal(said, ": line 1: invalid JSON: key must be a string at column 2\n");
	free(said);
}

static void profile_refuses_bytes_that_are_not_utf8(void **state)
{
	expect_field_refused("event", "\"\xff\"", "invalid JSON: invalid UTF-8 at column 11");
}

static void profile_cuts_long_values_out_of_messages(void **state)
{
	char *value = malloc(100003);
	char *event, *said;

	memset(value, 'x', 100002);
	value[0] = value[100001] = '"';
	value[100002] = '\0';
	event = make_event("shape", value);
	assert_int_equal(validate_bytes(event, strlen(event), NULL, &said), 1);
	assert_true(strlen(said) < 512);
	assert_non_null(strstr(said, "expected a map, found \"xxx"));
	free(said);
	free(event);
	free(value);
}

static void profile_names_all_missing_groups(void **state)
{
	char *event = make_event(NULL, NULL);

	expect_result(1, event, "bucket_prof,unified_prof,iter_prof",
		      ": missing profile event groups: bucket_prof, iter_prof\n");
	expect_result(1, "", "a", ": missing profile event groups: a\n");
	free(event);
}

static void profile_looks_for_groups_in_each_file(void **state)
{
	char *event = make_event(NULL, NULL);

	expect_result(0, event, "unified_prof", ": 1 event, ok\n");
	expect_result(0, event, "", ": 1 event, ok\n");
	free(event);
}

static void profile_takes_what_the_seed_takes(void **state)
{
	expect_field_taken(NULL, NULL);
	expect_field_taken("commit_sha", "null");
	expect_field_taken("env_hash", "\"sha256:\"");
	expect_field_taken("concurrency", "4294967295");
	/* ferrum reads these members as any JSON value, so what is no u64 is fine there. */
	expect_field_taken("stage_us", "{\"total\":-0,\"own\":-1,\"half\":0.5}");
	expect_field_taken("shape", "{\"step\":-0}");
	expect_field_taken("source", "null");
	expect_field_taken("source", NULL);
	expect_field_taken("source_line", "\"x\",\"unknown\":[1]");
	expect_field_taken("stage_us", "{\"big\":18446744073709551615}");
	expect_field_taken("shape", "{\"preview\":[1,2],\"o\":{}}");
}

static void profile_counts_events_and_not_blank_lines(void **state)
{
	char *event = make_event(NULL, NULL);
	char *text = NULL;

	assert_true(asprintf(&text, "\u3000%s\u00a0\r\n\n \t\n%s", event, event) > 0);
	expect_result(0, text, NULL, ": 2 events, ok\n");
	expect_result(0, "", NULL, ": 0 events, ok\n");
	free(text);
	free(event);
}

static void profile_reads_lines_of_any_length(void **state)
{
	size_t size = 3 << 20;
	char *value = malloc(size);

	memset(value, 'x', size - 1);
	value[0] = value[size - 2] = '"';
	value[size - 1] = '\0';
	expect_field_taken("source_line", value);
	free(value);
}

/* The output for a file of that name. */
static const char *say(const char *name, const char *text)
{
	static char said[512];
	char folder[] = "/tmp/ferrum-validate-XXXXXX", path[64];
	char *paths[] = {path};
	FILE *out = fmemopen(said, sizeof(said), "w"), *file;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	validate_files(paths, 1, NULL, out, out);
	fclose(out);
	unlink(path);
	rmdir(folder);
	return strchr(said, ' ') + 1;
}

#define SLICE                                                                                      \
	"{\"name\":\"f\",\"cat\":\"step\",\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":3,\"tid\":4}"
#define PARTIAL ", but partial: the file ends within the next event\n"

static void a_partial_trace_is_checked_up_to_its_last_whole_event(void **state)
{
	static const char *const ends[] = {"", ",", ",{", ",\n{\"name\":\"f", ",{\"ts\":1"};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		char text[512];

		snprintf(text, sizeof(text), "[" SLICE "," SLICE "%s", ends[i]);
		assert_string_equal(say("trace.json.partial", text), "2 events, ok" PARTIAL);
		assert_non_null(strstr(say("trace.json", text), "invalid JSON"));
	}
	assert_string_equal(say("trace.json.partial", "["), "0 events, ok" PARTIAL);
	assert_string_equal(say("trace.json.partial", "[" SLICE "]"), "1 event, ok\n");
}

static void a_partial_trace_with_a_wrong_event_is_refused(void **state)
{
	(void)state;
	assert_string_equal(say("t.partial", "[" SLICE ",{\"name\":1},"),
			    "event 2: expected a string, found 1\n");
	assert_non_null(strstr(say("t.partial", "[" SLICE "}"), "expected `,` or `]`"));
}

static void a_partial_kineto_trace_needs_no_pairs(void **state)
{
	const char *text =
		"{\"ferrum.mono_base_ns\":0,\"traceEvents\":[{\"ph\":\"s\",\"cat\":\"ac2g\","
		"\"name\":\"ac2g\",\"id\":1,\"ts\":1.5,\"pid\":1,\"tid\":2},";

	(void)state;
	assert_string_equal(say("t.json.partial", text), "1 event, ok" PARTIAL);
}

static void a_partial_profile_may_end_within_a_line(void **state)
{
	(void)state;
	assert_string_equal(say("p.jsonl.partial", "{\"event\":\"st"), "0 events, ok" PARTIAL);
	assert_non_null(strstr(say("p.jsonl.partial", "{\"event\":\"st\n"), "line 1: "));
	assert_non_null(strstr(say("p.jsonl", "{\"event\":\"st"), "line 1: "));
}

#define NO_OBJECT "line 1: profile event must be a JSON object\n"

static void a_profile_that_begins_with_a_bracket_is_told_by_its_name(void **state)
{
	(void)state;
	assert_string_equal(say("p.jsonl", "[]\n"), NO_OBJECT);
	assert_string_equal(say("p.jsonl.partial", "[" SLICE "]\n{"), NO_OBJECT);
	assert_string_equal(say("p.jsonl", "\n[1"),
			    "line 2: invalid JSON: EOF while parsing a value at column 3\n");
	assert_string_equal(say("p.jsonl.partial", "[1"), "0 events, ok" PARTIAL);
	assert_string_equal(say("p.jsonl", "{\"traceEvents\":[]}"), "0 events, ok\n");
}

static void a_whole_array_before_other_lines_is_a_line_of_a_profile(void **state)
{
	static const char *const names[] = {"p.log", "p.log.partial"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(say(names[i], "[]\n{}\n"), NO_OBJECT);
		assert_string_equal(say(names[i], " [\"\\\"]\", {\"a\": [1]}]\r\n\n1"), NO_OBJECT);
		assert_string_equal(say(names[i], "[" SLICE "]\n{\"event\":"), NO_OBJECT);
	}
}

static void an_array_is_a_trace_on_one_line_and_on_many(void **state)
{
	static const char *const names[] = {"t", "t.json", "t.json.partial", "t.partial"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(say(names[i], "[]"), "0 events, ok\n");
		assert_string_equal(say(names[i], "[" SLICE "," SLICE "]\n \n"), "2 events, ok\n");
		assert_string_equal(say(names[i], "[" SLICE ",\n" SLICE "\n]\n"), "2 events, ok\n");
		assert_string_equal(say(names[i], "[\n" SLICE "\n]"), "1 event, ok\n");
		assert_string_equal(say(names[i], "[1]\n"),
				    "event 1: expected an event, found 1\n");
	}
}

static void a_capture_is_not_taken_for_a_profile(void **state)
{
	const char *const said = "a capture, not a trace or a profile: read it with --replay\n";

	(void)state;
	assert_string_equal(say("c.fbt", "FEBUTRFL\2"), said);
	assert_string_equal(say("c.fbt.partial", "FEBUTRFL\2"), said);
}

static void a_verdict_that_cannot_be_written_is_a_failure(void **state)
{
	char path[] = "/tmp/ferrum-profile-test-XXXXXX";
	char *paths[] = {path}, *printed = NULL;
	size_t size;
	FILE *full = fopen("/dev/full", "w"), *err = open_memstream(&printed, &size);

	assert_non_null(full);
	close(mkstemp(path));
	assert_false(validate_files(paths, 1, NULL, full, err));
	unlink(path);
	fclose(full);
	fclose(err);
	assert_string_equal(printed, "validate: No space left on device\n");
	free(printed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_names_the_file_that_cannot_be_read),
		cmocka_unit_test(profile_refuses_every_missing_field),
		cmocka_unit_test(profile_names_the_first_missing_field),
		cmocka_unit_test(profile_refuses_what_is_no_object),
		cmocka_unit_test(profile_keeps_the_seeds_rules_in_its_words),
		cmocka_unit_test(profile_refuses_wrong_types_in_serdes_words),
		cmocka_unit_test(profile_takes_types_before_rules),
		cmocka_unit_test(profile_refuses_lines_that_are_no_json),
		cmocka_unit_test(profile_refuses_nul_bytes),
		cmocka_unit_test(profile_refuses_bytes_that_are_not_utf8),
		cmocka_unit_test(profile_cuts_long_values_out_of_messages),
		cmocka_unit_test(profile_names_all_missing_groups),
		cmocka_unit_test(profile_looks_for_groups_in_each_file),
		cmocka_unit_test(profile_takes_what_the_seed_takes),
		cmocka_unit_test(profile_counts_events_and_not_blank_lines),
		cmocka_unit_test(profile_reads_lines_of_any_length),
		cmocka_unit_test(a_partial_trace_is_checked_up_to_its_last_whole_event),
		cmocka_unit_test(a_partial_trace_with_a_wrong_event_is_refused),
		cmocka_unit_test(a_partial_kineto_trace_needs_no_pairs),
		cmocka_unit_test(a_partial_profile_may_end_within_a_line),
		cmocka_unit_test(a_profile_that_begins_with_a_bracket_is_told_by_its_name),
		cmocka_unit_test(a_whole_array_before_other_lines_is_a_line_of_a_profile),
		cmocka_unit_test(an_array_is_a_trace_on_one_line_and_on_many),
		cmocka_unit_test(a_capture_is_not_taken_for_a_profile),
		cmocka_unit_test(a_verdict_that_cannot_be_written_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
