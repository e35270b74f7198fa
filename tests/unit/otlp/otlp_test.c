/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/syscall.h>

#include "collector_fixture.h"
#include "base/json_read.h"
#include "base/log.h"
#include "judge/hang.h"
#include "otlp_fixture.h"
#include "otlp/otlp.h"

/*
 * Replaces the clock of this file and of otlp/otlp.c. With clock_step_ns set, each reading
 * advances the clock by that much, so that waits can be measured on a busy machine too.
 */
static uint64_t clock_step_ns;
static uint64_t stepped_ns;

int clock_gettime(clockid_t id, struct timespec *time)
{
	if (!clock_step_ns)
		return (int)syscall(SYS_clock_gettime, id, time);
	stepped_ns += clock_step_ns;
	time->tv_sec = (time_t)(stepped_ns / NS_PER_S);
	time->tv_nsec = (long)(stepped_ns % NS_PER_S);
	return 0;
}

struct fixture {
	struct collector *collector; /* its client is the sink's, which the test does not see */
	struct window *window;
	struct step step;
	struct escalation escalation;
	struct sink *sink;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char url[64];

	if (!fixture || collector_setup((void **)&fixture->collector))
		return -1;
	log_set_level(LOG_INFO);
	fixture->window = otlp_window("engine", "box");
	fixture->step = otlp_step();
	fixture->escalation = otlp_escalation(&fixture->step);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", fixture->collector->port);
	if (otlp_endpoint_parse(&fixture->collector->endpoint, url))
		return -1;
	*state = fixture;
	fixture->sink = sink_otlp__new(&fixture->collector->endpoint, &fixture->collector->health,
				       "service", true);
	return fixture->sink ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	fixture->sink->free(fixture->sink);
	window__free(fixture->window);
	collector_teardown((void **)&fixture->collector);
	free(fixture);
	return 0;
}

static void escalate(struct fixture *fixture)
{
	assert_int_equal(fixture->sink->write_escalation(fixture->sink, fixture->window,
							 &fixture->step, &fixture->escalation),
			 0);
}

static void finish(struct fixture *fixture)
{
	fixture->sink->wait(fixture->sink);
}

/* Takes the next request and reads it strictly. */
static struct json_object *take_body(struct fixture *fixture)
{
	struct collector *collector = fixture->collector;
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	struct json_object *root = NULL;
	char error[128] = "";

	while (!has_request(collector)) {
		assert_true(clock_ns(CLOCK_MONOTONIC) < end_ns);
		assert_int_equal(fixture->sink->poll(fixture->sink), 0);
		take_connection(collector);
		if (collector->connection >= 0)
			read_request(collector);
		poll(NULL, 0, 1);
	}
	if (json_read(collector->body, strlen(collector->body), &root, error, sizeof(error)))
		fail_msg("%s: %s", error, collector->body);
	return root;
}

static void answer_well(struct fixture *fixture)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

	fixture->collector->size = 0;
	assert_int_equal(send(fixture->collector->connection, text, strlen(text), MSG_NOSIGNAL),
			 strlen(text));
}

static const char *find_id(struct json_object *root, size_t index, const char *key)
{
	struct json_object *at = root;
	static const char *const path[] = {"resourceSpans", "scopeSpans", "spans"};

	for (size_t i = 0; i < 3; i++)
		at = json_object_array_get_idx(json_object_object_get(at, path[i]), i ? 0 : index);
	return json_object_get_string(json_object_object_get(at, key));
}

static void every_escalation_has_ids_of_its_own(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *first, *others;

	for (int i = 0; i < 3; i++)
		escalate(fixture);
	first = take_body(fixture);
	answer_well(fixture);
	others = take_body(fixture);
	answer_well(fixture);
	assert_int_equal(json_object_array_length(json_object_object_get(others, "resourceSpans")),
			 2);
	assert_int_equal(strlen(find_id(first, 0, "traceId")), 32);
	assert_int_equal(strlen(find_id(first, 0, "spanId")), 16);
	assert_string_not_equal(find_id(first, 0, "traceId"), find_id(others, 0, "traceId"));
	assert_string_not_equal(find_id(others, 1, "traceId"), find_id(others, 0, "traceId"));
	assert_string_not_equal(find_id(others, 1, "spanId"), find_id(others, 0, "spanId"));
	json_object_put(first);
	json_object_put(others);
	finish(fixture);
	assert_one_line(fixture->collector->errors,
			"otlp: 3 of 3 escalations were sent to http://127.0.0.1");
}

static void hang(struct fixture *fixture, uint64_t time_ns)
{
	const struct fbt_hang hang = {
		.tgid = 42, .tid = 43, .step_start_ns = START_NS, .time_ns = time_ns};
	const struct fbt_stop_sender nobody = {.time_ns = 0};

	window__add_hang(fixture->window, &hang, &nobody);
	assert_int_equal(fixture->sink->write_hang(fixture->sink, fixture->window, &hang), 0);
}

static void a_hang_is_sent(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *body;

	hang(fixture, START_NS + 9);
	body = take_body(fixture);
	answer_well(fixture);
	assert_string_equal(find_id(body, 0, "name"), "hang");
	json_object_put(body);
	finish(fixture);
	assert_one_line(fixture->collector->errors, "otlp: 1 of 1 escalations and hangs were sent");
}

/* A window of watch is open for weeks. */
static void of_many_hangs_each_hour_has_some_that_are_sent(void **state)
{
	struct fixture *fixture = *state;

	close(fixture->collector->listener);
	fixture->collector->listener = -1;
	for (int i = 0; i < 2 * HANGS_TOLD_MAX; i++)
		hang(fixture, START_NS + 9);
	hang(fixture, START_NS + 7200 * NS_PER_S);
	finish(fixture);
	assert_non_null(strstr(stderr_text(fixture->collector->errors),
			       "otlp: 33 of 33 escalations and hangs were not sent: "));
}

static void one_above_the_rate_limit_is_not_sent(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.suppressed = true;
	escalate(fixture);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fixture->sink->poll(fixture->sink), 0);
	take_connection(fixture->collector);
	assert_int_equal(fixture->collector->connections, 0);
	finish(fixture);
	assert_silent(fixture->collector->errors);
}

static void expect_sent_with(struct fixture *fixture, const char *attribute)
{
	struct json_object *body;
	char wanted[128];

	snprintf(wanted, sizeof(wanted), "{\"key\":\"%s\",\"value\":{\"boolValue\":true}}",
		 attribute);
	escalate(fixture);
	body = take_body(fixture);
	answer_well(fixture);
	assert_non_null(
		strstr(json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN), wanted));
	json_object_put(body);
	finish(fixture);
	assert_one_line(fixture->collector->errors, "otlp: 1 of 1 escalations were sent");
}

static void a_repeated_one_is_sent_and_says_so(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.repeated = true;
	expect_sent_with(fixture, "escalation.repeated");
}

static void one_that_is_as_usual_is_sent_and_says_so(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.as_usual = true;
	expect_sent_with(fixture, "escalation.as_usual");
}

static void what_python_kept_it_from_is_sent(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *body;
	const char *text;

	fixture->step.record.kind = 1;
	fixture->step.stalls.gc_known = true;
	fixture->step.stalls.record = (struct fbt_stalls){
		.gc_ns = 9000,
		.gc_own_ns = 7000,
		.gc_count = 2,
		.gc_longest_ns = 5000,
		.gc_generation = 1,
	};
	escalate(fixture);
	body = take_body(fixture);
	answer_well(fixture);
	text = json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN);
	assert_non_null(strstr(text, "{\"key\":\"step.gc_us\",\"value\":{\"intValue\":\"7\"}}"));
	assert_non_null(
		strstr(text, "{\"key\":\"step.gc_collections\",\"value\":{\"intValue\":\"2\"}}"));
	assert_non_null(
		strstr(text, "{\"key\":\"step.gc_generation\",\"value\":{\"intValue\":\"1\"}}"));
	/* Not measured is not zero. */
	assert_null(strstr(text, "step.gil_us"));
	json_object_put(body);
	finish(fixture);
	assert_one_line(fixture->collector->errors, "otlp: 1 of 1 escalations were sent");
}

static void what_could_not_be_sent_is_told_at_the_end(void **state)
{
	struct fixture *fixture = *state;
	const char *text;

	close(fixture->collector->listener);
	fixture->collector->listener = -1;
	for (int i = 0; i < 3; i++)
		escalate(fixture);
	finish(fixture);
	text = stderr_text(fixture->collector->errors);
	assert_non_null(strstr(text, "/v1/traces: Connection refused: trying again\n"));
	text = strchr(text, '\n') + 1;
	assert_ptr_equal(strstr(text, "ferrum-bpftrace: otlp: 3 of 3 escalations were not sent: "),
			 text);
	assert_non_null(strstr(text, "/v1/traces: Connection refused\n"));
	assert_string_equal(strchr(text, '\n'), "\n");
}

/* The collector accepts the connection but does not answer. */
static void in_a_hurry_it_waits_for_a_second(void **state)
{
	struct fixture *fixture = *state;
	uint64_t start_ns;

	escalate(fixture);
	stepped_ns = start_ns = clock_ns(CLOCK_MONOTONIC);
	clock_step_ns = NS_PER_S / 20;
	finish(fixture);
	clock_step_ns = 0;
	assert_in_range(stepped_ns - start_ns, NS_PER_S, NS_PER_S + NS_PER_S / 5);
	assert_one_line(fixture->collector->errors, "no answer in time");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_escalation_has_ids_of_its_own),
		TEST(a_hang_is_sent),
		TEST(of_many_hangs_each_hour_has_some_that_are_sent),
		TEST(one_above_the_rate_limit_is_not_sent),
		TEST(a_repeated_one_is_sent_and_says_so),
		TEST(one_that_is_as_usual_is_sent_and_says_so),
		TEST(what_python_kept_it_from_is_sent),
		TEST(in_a_hurry_it_waits_for_a_second),
		TEST(what_could_not_be_sent_is_told_at_the_end),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
