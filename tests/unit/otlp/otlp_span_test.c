/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/json_read.h"
#include "base/version.h"
#include "otlp_fixture.h"
#include "judge/text.h"
#include "otlp/otlp.h"

struct fixture {
	struct window *window;
	struct step step;
	struct escalation escalation;
	const char *service;
	char *text;
	struct json_object *root;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->window = otlp_window("engine", "box");
	fixture->step = otlp_step();
	fixture->escalation = otlp_escalation(&fixture->step);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	window__free(fixture->window);
	json_object_put(fixture->root);
	free(fixture->text);
	free(fixture);
	return 0;
}

static uint32_t write_text(struct fixture *fixture)
{
	struct otlp_span_ids ids;
	struct json json = {0};
	size_t size;
	uint32_t spans;

	for (size_t i = 0; i < sizeof(ids); i++)
		((uint8_t *)&ids)[i] = (uint8_t)(0xf0 + i);
	free(fixture->text);
	json.out = open_memstream(&fixture->text, &size);
	spans = otlp_span_write(&json, fixture->window, &fixture->step, &fixture->escalation,
				fixture->service, &ids);
	assert_int_equal(fclose(json.out), 0);
	return spans;
}

/* Reads the output again, strictly: it must be valid JSON in valid UTF-8. */
static uint32_t write_again(struct fixture *fixture)
{
	uint32_t spans = write_text(fixture);
	char error[128] = "";

	json_object_put(fixture->root);
	if (json_read(fixture->text, strlen(fixture->text), &fixture->root, error, sizeof(error)))
		fail_msg("%s: %s", fixture->text, error);
	return spans;
}

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	assert_non_null(object);
	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no %s", key);
	return value;
}

static struct json_object *first(struct json_object *array)
{
	assert_true(json_object_array_length(array) >= 1);
	return json_object_array_get_idx(array, 0);
}

static struct json_object *spans_of(struct fixture *fixture)
{
	return get(first(get(fixture->root, "scopeSpans")), "spans");
}

static struct json_object *span_of(struct fixture *fixture, size_t index)
{
	return json_object_array_get_idx(spans_of(fixture), index);
}

static const char *text_of(struct json_object *object, const char *key)
{
	return json_object_get_string(get(object, key));
}

/* The value of an attribute of any type as text; NULL if there is none. */
static const char *attribute(struct json_object *object, const char *key)
{
	struct json_object *attributes = get(object, "attributes");

	for (size_t i = 0; i < json_object_array_length(attributes); i++) {
		struct json_object *item = json_object_array_get_idx(attributes, i);
		struct json_object *value = get(item, "value");

		if (strcmp(text_of(item, "key"), key))
			continue;
		json_object_object_foreach(value, type, content)
		{
			(void)type;
			return json_object_get_string(content);
		}
	}
	return NULL;
}

static void a_cause_with_a_stack_is_an_event(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_stack *stack = &fixture->escalation.cause.stack;
	const struct fbt_code named = {.id = 1}, unnamed = {.id = 2, .address = 0x2bca};
	struct json_object *events;
	char time[32];

	window__add_code(fixture->window, &named, (const char *const[]){"take", "/eng", "01"});
	window__add_code(fixture->window, &unnamed, (const char *const[]){"", "/libx.so", "02"});
	*stack = (struct fbt_stack){
		.start_ns = fixture->step.record.start_ns + 1500, .count = 2, .codes = {1, 2}};
	fixture->escalation.cause.waker_stack = (struct fbt_stack){.header.flags = FBT_STACK_WAKER,
								   .start_ns = stack->start_ns,
								   .count = 1,
								   .codes = {1}};
	write_again(fixture);
	events = get(span_of(fixture, 0), "events");
	assert_int_equal(json_object_array_length(events), 1);
	assert_string_equal(text_of(first(events), "name"), "ferrum.cause");
	snprintf(time, sizeof(time), "%llu",
		 (unsigned long long)strtoull(text_of(span_of(fixture, 0), "startTimeUnixNano"),
					      NULL, 10) +
			 1500);
	assert_string_equal(text_of(first(events), "timeUnixNano"), time);
	assert_string_equal(attribute(first(events), "cause"),
			    cause_name(fixture->escalation.cause.kind));
	assert_string_equal(attribute(first(events), "cause.call"), "read");
	assert_string_equal(attribute(first(events), "cause.stack"), "take <- libx.so+0x2bca");
	assert_string_equal(attribute(first(events), "cause.stack_unnamed"),
			    "libx.so+0x2bca (BuildId: 02)");
	assert_string_equal(attribute(first(events), "cause.waker_stack"), "take");
	assert_null(attribute(first(events), "cause.waker_stack_unnamed"));
	assert_null(attribute(span_of(fixture, 0), "cause.stack"));
}

static void who_was_waited_for_is_in_the_attributes(void **state)
{
	struct fixture *fixture = *state;
	struct cause *cause = &fixture->escalation.cause;

	write_again(fixture);
	assert_null(attribute(span_of(fixture, 0), "waker_tid"));
	cause->waker.tid = 8;
	cause->waker.after_ns = 59 * MS;
	cause->waker_stack = (struct fbt_stack){.header.flags = FBT_STACK_WAKER, .count = 1};
	cause->holders[0] = (struct fbt_look_thread){
		.owner = 9, .depth = 1, .doing = FBT_DOING_CPU, .header.flags = FBT_LOOK_CYCLE};
	cause->holder_count = 1;
	cause->others[0] = (struct fbt_look_thread){.owner = 10,
						    .threads = 1,
						    .start_ns = MS,
						    .time_ns = 21 * MS,
						    .doing = FBT_DOING_CPU};
	cause->other_count = 1;
	cause->taken = (struct fbt_taken){.header.type = FBT_EVENT_TAKEN,
					  .waited_ns = 5 * MS,
					  .count = 1,
					  .takers = {{.tgid = 31, .ns = 4 * MS, .comm = "hog"}}};
	write_again(fixture);
	assert_string_equal(attribute(span_of(fixture, 0), "waker_tid"), "8");
	assert_string_equal(attribute(span_of(fixture, 0), "waker_after_us"), "59000");
	assert_null(attribute(span_of(fixture, 0), "waker_stack"));
	assert_string_equal(attribute(span_of(fixture, 0), "holder_tid"), "9");
	assert_string_equal(attribute(span_of(fixture, 0), "holder_in"), "cpu");
	assert_string_equal(attribute(span_of(fixture, 0), "holder_deadlock"), "true");
	assert_string_equal(attribute(span_of(fixture, 0), "others_seen"), "thread 10 on a CPU");
	assert_string_equal(attribute(span_of(fixture, 0), "others_seen_us"), "20000");
	assert_string_equal(attribute(span_of(fixture, 0), "cpu_taken_by"), "hog");
	assert_string_equal(attribute(span_of(fixture, 0), "cpu_taken_pid"), "31");
	assert_null(attribute(span_of(fixture, 0), "cause_evidence"));
}

/* Compares the order and the form of every member. The cause's text is taken from cause.c. */
static void an_escalation_is_exactly_this(void **state)
{
	struct fixture *fixture = *state;
	char evidence[512], expected[4096];

	cause_describe(&fixture->escalation.cause, fixture->window, evidence, sizeof(evidence));
	snprintf(expected, sizeof(expected),
		 "{\"resource\":{\"attributes\":["
		 "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"engine\"}},"
		 "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"box\"}},"
		 "{\"key\":\"process.pid\",\"value\":{\"intValue\":\"42\"}}]},"
		 "\"scopeSpans\":[{\"scope\":{\"name\":\"ferrum-bpftrace\",\"version\":\"%s\"},"
		 "\"spans\":[{\"traceId\":\"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\","
		 "\"spanId\":\"0001020304050607\",\"name\":\"llama_decode\",\"kind\":1,"
		 "\"startTimeUnixNano\":\"1700000000010000000\","
		 "\"endTimeUnixNano\":\"1700000000110000000\",\"attributes\":["
		 "{\"key\":\"brick.name\",\"value\":{\"stringValue\":\"llama_decode\"}},"
		 "{\"key\":\"brick.budget_us\",\"value\":{\"stringValue\":\"20000\"}},"
		 "{\"key\":\"brick.actual_us\",\"value\":{\"stringValue\":\"100000\"}},"
		 "{\"key\":\"brick.efficiency\",\"value\":{\"stringValue\":\"20.0\"}},"
		 "{\"key\":\"brick.over_budget\",\"value\":{\"stringValue\":\"true\"}},"
		 "{\"key\":\"escalation.reason\",\"value\":{\"stringValue\":\"both\"}},"
		 "{\"key\":\"syscall.overhead_percent\",\"value\":{\"stringValue\":\"60.0\"}},"
		 "{\"key\":\"syscall.dominant\",\"value\":{\"stringValue\":\"futex\"}},"
		 "{\"key\":\"syscall.mmap_us\",\"value\":{\"intValue\":\"0\"}},"
		 "{\"key\":\"syscall.futex_us\",\"value\":{\"intValue\":\"60000\"}},"
		 "{\"key\":\"syscall.ioctl_us\",\"value\":{\"intValue\":\"0\"}},"
		 "{\"key\":\"syscall.read_us\",\"value\":{\"intValue\":\"0\"}},"
		 "{\"key\":\"syscall.write_us\",\"value\":{\"intValue\":\"0\"}},"
		 "{\"key\":\"syscall.other_us\",\"value\":{\"intValue\":\"0\"}},"
		 "{\"key\":\"syscall.compute_us\",\"value\":{\"intValue\":\"40000\"}},"
		 "{\"key\":\"syscall.total_us\",\"value\":{\"intValue\":\"100000\"}},"
		 "{\"key\":\"escalation.cause\",\"value\":{\"stringValue\":\"lock_contention\"}},"
		 "{\"key\":\"escalation.evidence\",\"value\":{\"stringValue\":\"%s\"}},"
		 "{\"key\":\"escalation.fired\",\"value\":{\"stringValue\":"
		 "\"cv_exceeded,efficiency_low\"}},"
		 "{\"key\":\"step.number\",\"value\":{\"intValue\":\"7\"}},"
		 "{\"key\":\"thread.id\",\"value\":{\"intValue\":\"43\"}}],"
		 "\"status\":{\"message\":\"%s\",\"code\":2}},"
		 "{\"traceId\":\"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\","
		 "\"spanId\":\"1011121314151617\",\"parentSpanId\":\"0001020304050607\","
		 "\"name\":\"syscall.futex\",\"kind\":1,"
		 "\"startTimeUnixNano\":\"1700000000010000000\","
		 "\"endTimeUnixNano\":\"1700000000070000000\",\"attributes\":["
		 "{\"key\":\"syscall.calls\",\"value\":{\"intValue\":\"3\"}},"
		 "{\"key\":\"syscall.duration_us\",\"value\":{\"intValue\":\"60000\"}},"
		 "{\"key\":\"syscall.aggregated\",\"value\":{\"boolValue\":true}}]}]}]}",
		 tool_version(), evidence, escalation_description(ESCALATION_BOTH));
	assert_int_equal(write_text(fixture), 2);
	assert_string_equal(fixture->text, expected);
}

static void within_its_budget_a_step_has_no_status(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *status;

	fixture->escalation.result.actual_us = fixture->escalation.result.budget_us;
	write_again(fixture);
	assert_false(json_object_object_get_ex(span_of(fixture, 0), "status", &status));
	assert_string_equal(attribute(span_of(fixture, 0), "brick.over_budget"), "false");
}

static void a_category_is_a_child_only_above_five_percent(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_sum *sums = fixture->step.record.sums;

	sums[FBT_FUTEX].ns = 0;
	sums[FBT_READ].ns = 5 * MS;
	assert_int_equal(write_again(fixture), 1);
	assert_int_equal(json_object_array_length(spans_of(fixture)), 1);
	sums[FBT_READ].ns = 5 * MS + 1;
	sums[FBT_OTHER].ns = 20 * MS;
	assert_int_equal(write_again(fixture), 3);
	assert_int_equal(json_object_array_length(spans_of(fixture)), 3);
	assert_string_equal(text_of(span_of(fixture, 1), "name"), "syscall.read");
	assert_string_equal(text_of(span_of(fixture, 2), "name"), "syscall.other");
}

static void children_have_ids_of_their_own(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		fixture->step.record.sums[i].ns = 10 * MS;
	assert_int_equal(write_again(fixture), 1 + FBT_CATEGORY_COUNT);
	for (size_t i = 0; i < 1 + FBT_CATEGORY_COUNT; i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(text_of(span_of(fixture, i), "spanId"),
						text_of(span_of(fixture, k), "spanId"));
	}
}

/* An interval's sums are those of all threads, so they may exceed its length. */
static void a_child_is_never_longer_than_the_step(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.thread_ns = 800 * MS;
	fixture->step.record.sums[FBT_FUTEX].ns = 700 * MS;
	write_again(fixture);
	assert_string_equal(text_of(span_of(fixture, 1), "endTimeUnixNano"),
			    text_of(span_of(fixture, 0), "endTimeUnixNano"));
	assert_string_equal(attribute(span_of(fixture, 1), "syscall.duration_us"), "700000");
}

static void a_hang_is_a_span_up_to_now(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_hang hang = {.tgid = 42,
				      .tid = 43,
				      .step_start_ns = START_NS + 10 * MS,
				      .time_ns = START_NS + 10010 * MS,
				      .call = {.header.type = FBT_EVENT_CALL,
					       .tid = 43,
					       .nr = 202,
					       .duration_ns = 9990 * MS}};
	struct hang_look look = {
		.record = {.tgid = 42, .tid = 43, .start_ns = hang.step_start_ns, .threads = 1}};
	struct fbt_look_thread group = {.header.flags = FBT_LOOK_GROUP | FBT_LOOK_IN_CALL,
					.owner = 43,
					.threads = 1,
					.nr = 202,
					.doing = FBT_DOING_CALL,
					.count = 1,
					.codes = {1}};
	const struct otlp_span_ids ids = {.trace = {1}, .span = {2}};
	const struct fbt_code code = {.id = 1};
	struct json json = {0};
	struct json_object *span;
	char error[128] = "";
	size_t size;

	assert_int_equal(window__add_code(fixture->window, &code,
					  (const char *const[]){"Cache::take", "/x", ""}),
			 0);
	assert_int_equal(vec_push(&look.threads, group), 0);
	assert_int_equal(window__add_hang_look(fixture->window, &look), 0);
	json.out = open_memstream(&fixture->text, &size);
	assert_int_equal(otlp_hang_write(&json, fixture->window, &hang, NULL, &ids), 1);
	assert_int_equal(fclose(json.out), 0);
	if (json_read(fixture->text, size, &fixture->root, error, sizeof(error)))
		fail_msg("%s: %s", fixture->text, error);
	span = span_of(fixture, 0);
	assert_string_equal(text_of(span, "name"), "hang");
	assert_string_equal(text_of(span, "startTimeUnixNano"), "1700000000010000000");
	assert_string_equal(text_of(span, "endTimeUnixNano"), "1700000010010000000");
	assert_non_null(strstr(attribute(span, "hang.evidence"), "has not returned for 10.0 s"));
	assert_string_equal(attribute(span, "hang.open_us"), "10000000");
	assert_string_equal(attribute(span, "hang.call"), "futex");
	assert_string_equal(attribute(span, "hang.threads"), "thread 43 in futex: Cache::take");
	assert_string_equal(attribute(span, "hang.stack"), "Cache::take");
	assert_string_equal(attribute(span, "thread.id"), "43");
	assert_string_equal(text_of(get(span, "status"), "message"),
			    attribute(span, "hang.evidence"));
}

static void numbers_beyond_the_range_are_the_largest(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.result.breakdown.total_us = UINT64_MAX;
	fixture->step.number = UINT64_MAX;
	fixture->step.record.sums[FBT_FUTEX] =
		(struct fbt_sum){.ns = UINT64_MAX, .calls = UINT64_MAX};
	write_again(fixture);
	assert_string_equal(attribute(span_of(fixture, 0), "syscall.total_us"),
			    "9223372036854775807");
	assert_string_equal(attribute(span_of(fixture, 0), "step.number"), "9223372036854775807");
	assert_string_equal(attribute(span_of(fixture, 1), "syscall.calls"), "9223372036854775807");
}

static void times_of_a_damaged_capture_do_not_wrap(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_step *record = &fixture->step.record;

	fixture->window->record.realtime_ns = 5;
	record->start_ns = START_NS - 10;
	record->end_ns = START_NS;
	write_again(fixture);
	assert_string_equal(text_of(span_of(fixture, 0), "startTimeUnixNano"), "0");
	assert_string_equal(text_of(span_of(fixture, 0), "endTimeUnixNano"), "10");
	fixture->window->record.realtime_ns = UINT64_MAX;
	record->start_ns = START_NS + 1;
	record->end_ns = UINT64_MAX;
	write_again(fixture);
	assert_string_equal(text_of(span_of(fixture, 0), "startTimeUnixNano"),
			    "18446744073709551615");
	assert_string_equal(text_of(span_of(fixture, 0), "endTimeUnixNano"),
			    "18446744073709551615");
	record->end_ns = START_NS;
	record->start_ns = START_NS + 5;
	fixture->window->record.realtime_ns = REALTIME_NS;
	write_again(fixture);
	assert_string_equal(text_of(span_of(fixture, 0), "startTimeUnixNano"),
			    text_of(span_of(fixture, 0), "endTimeUnixNano"));
}

static void a_step_before_the_window_is_before_its_time(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.start_ns = START_NS - 1;
	write_again(fixture);
	assert_string_equal(text_of(span_of(fixture, 0), "startTimeUnixNano"),
			    "1699999999999999999");
}

static void strings_of_the_target_become_valid(void **state)
{
	struct fixture *fixture = *state;

	window__free(fixture->window);
	fixture->window = otlp_window("en\"gi\xffne\n\x1b", "b\\o\xc0\x80x");
	fixture->escalation.result.brick_name = "f\xed\xa0\x80<\"\t\x01>";
	write_again(fixture);
	assert_string_equal(text_of(span_of(fixture, 0), "name"), "f\xef\xbf\xbd\xef\xbf\xbd"
								  "\xef\xbf\xbd<\"\t\x01>");
	assert_string_equal(attribute(get(fixture->root, "resource"), "service.name"),
			    "en\"gi\xef\xbf\xbdne\n\x1b");
	assert_string_equal(attribute(get(fixture->root, "resource"), "host.name"),
			    "b\\o\xef\xbf\xbd\xef\xbf\xbdx");
}

static void a_service_name_goes_before_the_process(void **state)
{
	struct fixture *fixture = *state;

	fixture->service = "llm";
	write_again(fixture);
	assert_string_equal(attribute(get(fixture->root, "resource"), "service.name"), "llm");
	fixture->service = "";
	write_again(fixture);
	assert_string_equal(attribute(get(fixture->root, "resource"), "service.name"), "engine");
}

static void a_process_that_is_not_known_is_an_unknown_service(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.tgid = 77;
	write_again(fixture);
	assert_string_equal(attribute(get(fixture->root, "resource"), "service.name"),
			    "unknown_service");
	assert_string_equal(attribute(get(fixture->root, "resource"), "process.pid"), "77");
}

static void a_step_without_a_name_is_a_step(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.result.brick_name = "";
	write_again(fixture);
	assert_string_equal(text_of(span_of(fixture, 0), "name"), "step");
}

static void calls_that_were_not_traced_have_no_attributes(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.header.flags |= FBT_STEP_CALLS_UNKNOWN;
	memset(fixture->step.record.sums, 0, sizeof(fixture->step.record.sums));
	step_breakdown(&fixture->step, &fixture->escalation.result.breakdown);
	assert_int_equal(write_again(fixture), 1);
	assert_null(strstr(fixture->text, "syscall."));
	assert_non_null(attribute(span_of(fixture, 0), "brick.actual_us"));
	assert_non_null(attribute(span_of(fixture, 0), "escalation.reason"));
}

static void all_that_fired_is_named(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.fired = UINT32_MAX;
	write_again(fixture);
	assert_string_equal(attribute(span_of(fixture, 0), "escalation.fired"),
			    "cv_exceeded,efficiency_low,both,memory_cliff,gpu_transfer_overhead,"
			    "manual");
	fixture->escalation.fired = 0;
	write_again(fixture);
	assert_string_equal(attribute(span_of(fixture, 0), "escalation.fired"), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_escalation_is_exactly_this),
		TEST(a_cause_with_a_stack_is_an_event),
		TEST(who_was_waited_for_is_in_the_attributes),
		TEST(within_its_budget_a_step_has_no_status),
		TEST(a_category_is_a_child_only_above_five_percent),
		TEST(children_have_ids_of_their_own),
		TEST(a_child_is_never_longer_than_the_step),
		TEST(a_hang_is_a_span_up_to_now),
		TEST(numbers_beyond_the_range_are_the_largest),
		TEST(times_of_a_damaged_capture_do_not_wrap),
		TEST(a_step_before_the_window_is_before_its_time),
		TEST(strings_of_the_target_become_valid),
		TEST(a_service_name_goes_before_the_process),
		TEST(a_process_that_is_not_known_is_an_unknown_service),
		TEST(a_step_without_a_name_is_a_step),
		TEST(calls_that_were_not_traced_have_no_attributes),
		TEST(all_that_fired_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
