/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_read.h"
#include "output/kineto_append.h"
#include "stderr_fixture.h"

#define REALTIME_NS 1790000000000000000ull
#define BASE_NS	    (REALTIME_NS - REALTIME_NS % (7889238 * 1000000000ull))

/* The events of a file of ours that text was appended to. *err: what that returned. */
static struct json_object *append(const char *text, uint64_t limit, int *err)
{
	FILE *in = fmemopen((char *)(uintptr_t)text, strlen(text), "r");
	struct window *window = window__new();
	struct json_object *all, *events;
	struct kineto_file file;
	char *out_text = NULL, error[128];
	size_t size;
	FILE *out = open_memstream(&out_text, &size);

	window->record.realtime_ns = REALTIME_NS;
	window->record.start_ns = 5;
	assert_int_equal(kineto_file_init(&file, out, 0, 1, "a.json"), 0);
	kineto_file_begin(&file, window);
	*err = kineto_append(&file, window, in, limit);
	kineto_file_end_events(&file, window);
	assert_int_equal(kineto_file_end(&file), 0);
	fclose(out);
	/* Whatever was appended, the file is sound. */
	assert_int_equal(json_read(out_text, size, &all, error, sizeof(error)), 0);
	assert_true(json_object_object_get_ex(all, "traceEvents", &events));
	json_object_get(events);
	json_object_put(all);
	kineto_file_clear(&file);
	window__free(window);
	free(out_text);
	fclose(in);
	return events;
}

/* The first event says whose the next ones are. */
static struct json_object *member(struct json_object *events, size_t i, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(json_object_array_get_idx(events, 1 + i), key, &value);
	return value;
}

/* The first event and the last one are our own. */
static size_t count_of(struct json_object *events)
{
	return json_object_array_length(events) - 2;
}

static void events_are_copied_and_members_before_them_are_not(void **state)
{
	struct json_object *events;
	char text[512];
	int err;

	snprintf(text, sizeof(text),
		 "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": [1]}],\n"
		 "\"baseTimeNanoseconds\": %llu, \"traceEvents\": [\n"
		 "{\"ph\": \"X\", \"name\": \"aten::mm\", \"ts\": 7.125, \"args\": {\"a\": [1]}}, "
		 "{\"ph\": \"X\", \"name\": \"b\", \"ts\": 8}], \"traceName\": \"x\"}",
		 BASE_NS);
	events = append(text, 1000, &err);
	assert_int_equal(err, 0);
	assert_int_equal(count_of(events), 2);
	assert_string_equal(json_object_get_string(member(events, 0, "name")), "aten::mm");
	assert_true(json_object_get_double(member(events, 0, "ts")) == 7.125);
	assert_non_null(member(events, 0, "args"));
	json_object_put(events);
}

static void times_of_another_base_are_moved(void **state)
{
	struct json_object *events;
	char text[256];
	int err;

	snprintf(text, sizeof(text),
		 "{\"baseTimeNanoseconds\": %llu, \"traceEvents\": [{\"ts\": 7.5}]}",
		 BASE_NS + 2000000);
	events = append(text, 1000, &err);
	assert_int_equal(err, 0);
	assert_true(json_object_get_double(member(events, 0, "ts")) == 2007.5);
	json_object_put(events);
}

static void times_without_a_base_are_those_of_the_clock(void **state)
{
	struct json_object *events;
	char text[256];
	int err;

	snprintf(text, sizeof(text), "{\"traceEvents\": [{\"ts\": %llu}]}", BASE_NS / 1000 + 40);
	events = append(text, 1000, &err);
	assert_int_equal(err, 0);
	assert_true(json_object_get_double(member(events, 0, "ts")) == 40);
	json_object_put(events);
}

static void what_our_file_has_already_is_left_out(void **state)
{
	int err;
	struct json_object *events =
		append("{\"traceEvents\": [{\"ph\": \"M\", \"name\": \"process_name\"}, "
		       "{\"ph\": \"M\", \"name\": \"thread_name\"}, "
		       "{\"name\": \"Record Window End\"}]}",
		       1000, &err);

	assert_int_equal(err, 0);
	assert_int_equal(count_of(events), 1);
	assert_string_equal(json_object_get_string(member(events, 0, "name")), "thread_name");
	json_object_put(events);
}

/* As in Kineto's output_json.cpp. */
static void lanes_with_names_are_copied_behind_a_mark(void **state)
{
	struct json_object *events, *name;
	int err;

	events = append("{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"Trace\", \"ts\": 1.000, "
			"\"dur\": 2.000, \"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\", "
			"\"name\": \"PyTorch Profiler (0)\", \"args\": {\"Op count\": 0}}, "
			"{\"name\": \"process_sort_index\", \"ph\": \"M\", \"ts\": 1.000, "
			"\"pid\": \"Spans\", \"tid\": 0, \"args\": {\"sort_index\": 536870912}}]}",
			1000, &err);
	assert_int_equal(err, 0);
	assert_int_equal(count_of(events), 1);
	assert_string_equal(json_object_get_string(member(events, 0, "pid")), "Spans");
	assert_true(json_object_object_get_ex(json_object_array_get_idx(events, 0), "name", &name));
	assert_string_equal(json_object_get_string(name), KINETO_FOREIGN);
	json_object_put(events);
}

static void no_event_is_no_error(void **state)
{
	int err;

	json_object_put(append("{\"traceEvents\": []}", 1000, &err));
	assert_int_equal(err, 0);
}

static void a_broken_trace_keeps_what_came_before(void **state)
{
	static const char *const broken[] = {
		"{\"traceEvents\": [{\"name\": \"a\"}, {\"name\": \"b\"",
		"{\"traceEvents\": [{\"name\": \"a\"}, 7]}",
		"{\"traceEvents\": [{\"name\": \"a\"} {\"name\": \"b\"}]}",
		"{\"traceEvents\": [{\"name\": \"a\"}, {\"name\": \"\x01\"}]}",
	};

	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		int err;
		struct json_object *events = append(broken[i], 1000, &err);

		assert_int_equal(err, -EBADMSG);
		assert_int_equal(count_of(events), 1);
		json_object_put(events);
	}
	assert_non_null(strstr(stderr_text(*state), "a.json: the trace of PyTorch's profiler"));
}

static void what_is_no_trace_is_refused(void **state)
{
	static const char *const others[] = {"[]", "{}", "7", "{\"traceEvents\": {}}"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		int err;

		json_object_put(append(others[i], 1000, &err));
		assert_int_equal(err, -EBADMSG);
	}
}

static void a_file_that_grows_ends_at_its_first_size(void **state)
{
	int err;
	struct json_object *events =
		append("{\"traceEvents\": [{\"name\": \"a\"}, {\"name\": \"b\"}]}", 34, &err);

	assert_int_equal(err, -EBADMSG);
	assert_int_equal(count_of(events), 1);
	json_object_put(events);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_are_copied_and_members_before_them_are_not),
		TEST(times_of_another_base_are_moved),
		TEST(times_without_a_base_are_those_of_the_clock),
		TEST(what_our_file_has_already_is_left_out),
		TEST(lanes_with_names_are_copied_behind_a_mark),
		TEST(no_event_is_no_error),
		TEST(a_broken_trace_keeps_what_came_before),
		TEST(what_is_no_trace_is_refused),
		TEST(a_file_that_grows_ends_at_its_first_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
