/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "collector_fixture.h"
#include "otlp/otlp.h"

static void expect_line(struct collector *collector, const char *part)
{
	assert_one_line(collector->errors, part);
}

static int lines_with(struct collector *collector, const char *part)
{
	int count = 0;

	for (const char *at = stderr_text(collector->errors); (at = strstr(at, part)); at++)
		count++;
	return count;
}

static void expect_silence(struct collector *collector)
{
	assert_silent(collector->errors);
}

static void move_to(struct collector *collector, uint64_t from_ns, uint64_t ms)
{
	collector->now_ns = from_ns + ms * NS_PER_MS;
}

/* A client sends one request with one span, and the collector answers. */
static void exchange(struct collector *collector, const char *path, const char *status,
		     const char *body)
{
	open_client(collector, path);
	offer(collector, "{}", 1);
	expect_request(collector);
	answer(collector, status, body);
}

static void free_accepts_null(void **state)
{
	(void)state;
	otlp_client__free(NULL);
}

static void a_request_is_as_the_specification_has_it(void **state)
{
	struct collector *collector = *state;

	assert_int_equal(otlp_endpoint_add_headers(&collector->endpoint, "api-key=s3cret,empty="),
			 0);
	open_client(collector, "");
	offer(collector, "{\"a\":1}", 2);
	expect_request(collector);
	assert_ptr_equal(strstr(collector->request, "POST /v1/traces HTTP/1.1\r\n"),
			 collector->request);
	assert_non_null(strstr(collector->request, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(collector->request, "\r\napi-key: s3cret\r\n"));
	assert_non_null(strstr(collector->request, "\r\nempty: \r\n"));
	assert_non_null(strstr(collector->request, "\r\nUser-Agent: ferrum-bpftrace/"));
	assert_null(strstr(collector->request, "Expect:"));
	assert_string_equal(collector->body, "{\"resourceSpans\":[{\"a\":1}]}");
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 1, 0, 0);
	expect_silence(collector);
}

/* Above 1 MiB libcurl would send Expect: 100-continue and wait for a second. */
static void a_large_request_does_not_ask_first(void **state)
{
	struct collector *collector = *state;
	size_t size = (1 << 20) + 1;
	char *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, '1', size);
	text[size] = '\0';
	open_client(collector, "");
	assert_int_equal(otlp_client__queue(collector->client, text, size, 1), 0);
	expect_request(collector);
	assert_null(strstr(collector->request, "Expect:"));
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 1, 0, 0);
}

static void with_nothing_to_send_nothing_is_done(void **state)
{
	struct collector *collector = *state;

	open_client(collector, "");
	expect_no_request(collector);
	assert_int_equal(collector->connections, 0);
	otlp_client__finish(collector->client);
	expect_silence(collector);
}

static void what_comes_meanwhile_goes_together(void **state)
{
	struct collector *collector = *state;

	open_client(collector, "");
	offer(collector, "0", 1);
	expect_request(collector);
	for (int i = 0; i < OTLP_BATCH_MAX + 6; i++)
		offer(collector, i < OTLP_BATCH_MAX ? "1" : "2", 1);
	answer(collector, "200 OK", "");
	expect_ended(collector, 1, 0, 0);
	expect_request(collector);
	assert_int_equal(strlen(collector->body), strlen("{\"resourceSpans\":[]}") + 64 * 2 - 1);
	answer(collector, "200 OK", "");
	expect_request(collector);
	assert_string_equal(collector->body, "{\"resourceSpans\":[2,2,2,2,2,2]}");
	answer(collector, "200 OK", "");
	expect_ended(collector, 71, 0, 0);
	assert_int_equal(counts_of(collector)->requests, 3);
	/* Each request has a connection of its own. */
	assert_int_equal(collector->connections, 3);
	expect_silence(collector);
}

static void what_is_taken_in_part_is_not_sent_again(void **state)
{
	struct collector *collector = *state;

	open_client(collector, "");
	for (int i = 0; i < 2; i++) {
		offer(collector, "{}", 5);
		expect_request(collector);
		answer(collector, "200 OK",
		       "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"why\"}}");
		expect_ended(collector, 1 + (uint64_t)i, 0, 0);
	}
	assert_int_equal(counts_of(collector)->rejected_spans, 6);
	move_to(collector, collector->now_ns, 3600000);
	expect_no_request(collector);
	expect_line(collector, "some spans were rejected: why");
}

static void no_more_spans_are_rejected_than_were_sent(void **state)
{
	struct collector *collector = *state;

	open_client(collector, "");
	offer(collector, "{}", 5);
	expect_request(collector);
	answer(collector, "200 OK",
	       "{\"partialSuccess\":{\"rejectedSpans\":\"9223372036854775807\"}}");
	expect_ended(collector, 1, 0, 0);
	assert_int_equal(counts_of(collector)->rejected_spans, 5);
}

static void a_bad_request_is_not_sent_again(void **state)
{
	struct collector *collector = *state;
	uint64_t start_ns = collector->now_ns;

	exchange(collector, "", "400 Bad Request", "{\"message\":\"no\\nspan\"}");
	expect_ended(collector, 0, 1, 0);
	move_to(collector, start_ns, 3600000);
	expect_no_request(collector);
	assert_string_equal(otlp_client__reason(collector->client), "HTTP 400: no\nspan");
	expect_line(collector, "HTTP 400: no\\nspan: not sent again");
	/* Later spans are sent. */
	offer(collector, "{}", 1);
	expect_request(collector);
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 1, 1, 0);
}

static void a_redirect_is_not_followed(void **state)
{
	struct collector *collector = *state;

	exchange(collector, "/here", "307 Temporary Redirect\r\nLocation: /there", "");
	expect_ended(collector, 0, 1, 0);
	expect_no_request(collector);
	expect_line(collector, "/here: HTTP 307, a redirect, which is not followed");
}

static void retry_after_seconds_is_the_wait(void **state)
{
	struct collector *collector = *state;
	uint64_t start_ns = collector->now_ns;

	exchange(collector, "", "429 Too Many Requests\r\nRetry-After: 120", "");
	expect_ended(collector, 0, 0, 1);
	move_to(collector, start_ns, 119999);
	expect_no_request(collector);
	move_to(collector, start_ns, 120000);
	expect_request(collector);
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 1, 0, 1);
}

static void retry_after_a_date_is_the_wait(void **state)
{
	struct collector *collector = *state;
	uint64_t start_ns = collector->now_ns;
	time_t when = time(NULL) + 300;
	char status[128];
	struct tm date;

	open_client(collector, "");
	offer(collector, "{}", 1);
	expect_request(collector);
	gmtime_r(&when, &date);
	strftime(status, sizeof(status),
		 "503 Service Unavailable\r\nRetry-After: %a, %d %b %Y %H:%M:%S GMT", &date);
	answer(collector, status, "");
	expect_ended(collector, 0, 0, 1);
	/* The test itself may have taken some of those 300 s. */
	move_to(collector, start_ns, 200000);
	expect_no_request(collector);
	move_to(collector, start_ns, 301000);
	expect_request(collector);
}

static void an_impossible_retry_after_is_none(void **state)
{
	struct collector *collector = *state;
	static const char *const values[] = {"-5", "soon", "", "99999999999999999999999",
					     "Mon, 01 Jan 1990 00:00:00 GMT"};

	open_client(collector, "");
	offer(collector, "{}", 1);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char status[128];

		expect_request(collector);
		snprintf(status, sizeof(status), "503 Busy\r\nRetry-After: %s", values[i]);
		answer(collector, status, "");
		expect_ended(collector, 0, 0, i + 1);
		/* The longest possible wait. */
		move_to(collector, collector->now_ns, 600000);
	}
	expect_request(collector);
}

static void without_it_the_wait_is_about_a_second(void **state)
{
	struct collector *collector = *state;
	uint64_t start_ns = collector->now_ns;

	open_client(collector, "");
	offer(collector, "{\"a\":1}", 1);
	expect_request(collector);
	answer(collector, "503 Service Unavailable", "busy");
	expect_ended(collector, 0, 0, 1);
	move_to(collector, start_ns, 499);
	expect_no_request(collector);
	/* Spans that come during the wait go into the same request. */
	offer(collector, "{\"b\":2}", 1);
	move_to(collector, start_ns, 1000);
	expect_request(collector);
	assert_string_equal(collector->body, "{\"resourceSpans\":[{\"a\":1},{\"b\":2}]}");
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 2, 0, 1);
	expect_line(collector, "HTTP 503: trying again");
}

static void trouble_is_said_once(void **state)
{
	struct collector *collector = *state;
	static const char *const statuses[] = {"429 x", "502 x", "503 x", "504 x"};

	open_client(collector, "");
	offer(collector, "{}", 1);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		expect_request(collector);
		answer(collector, statuses[i], "");
		expect_ended(collector, 0, 0, i + 1);
		move_to(collector, collector->now_ns, 30000);
	}
	assert_string_equal(otlp_client__reason(collector->client), "HTTP 504");
	expect_line(collector, "HTTP 429: trying again");
}

/* A collector that was restarted once, and refuses everything weeks later. */
static void trouble_that_comes_back_is_said_again(void **state)
{
	struct collector *collector = *state;

	open_client(collector, "");
	offer(collector, "{}", 1);
	expect_request(collector);
	answer(collector, "503 x", "");
	expect_ended(collector, 0, 0, 1);
	move_to(collector, collector->now_ns, 30000);
	expect_request(collector);
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 1, 0, 1);
	expect_line(collector, "HTTP 503: trying again");
	for (int i = 0; i < 3; i++) {
		offer(collector, "{}", 1);
		expect_request(collector);
		answer(collector, "401 x", "");
		expect_ended(collector, 1, i + 1, 1);
	}
	assert_int_equal(lines_with(collector, "HTTP 401: not sent again"), 1);
	/* Within a minute of the first one that was taken, not again. */
	offer(collector, "{}", 1);
	expect_request(collector);
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 2, 3, 1);
	offer(collector, "{}", 1);
	expect_request(collector);
	answer(collector, "401 x", "");
	expect_ended(collector, 2, 4, 1);
	assert_int_equal(lines_with(collector, "HTTP 401: not sent again"), 1);
}

static void expect_retry_of(struct collector *collector, const char *bytes)
{
	open_client(collector, "");
	offer(collector, "{}", 1);
	expect_request(collector);
	answer_bytes(collector, bytes, strlen(bytes));
	close_connection(collector);
	expect_ended(collector, 0, 0, 1);
	move_to(collector, collector->now_ns, 1000);
	expect_request(collector);
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 1, 0, 1);
	expect_line(collector, ": trying again");
}

static void garbage_is_no_answer(void **state)
{
	expect_retry_of(*state, "\x15\x03\x01garbage\r\n\r\nmore");
}

static void half_an_answer_is_no_answer(void **state)
{
	expect_retry_of(*state, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"par");
}

static void half_a_header_is_no_answer(void **state)
{
	expect_retry_of(*state, "HTTP/1.1 200 OK\r\nConte");
}

static void a_closed_connection_is_no_answer(void **state)
{
	expect_retry_of(*state, "");
}

static void a_closed_port_is_tried_again_less_and_less_often(void **state)
{
	struct collector *collector = *state;
	uint64_t requests = 0;

	close(collector->listener);
	collector->listener = -1;
	open_client(collector, "");
	offer(collector, "{}", 1);
	for (int second = 0; second < 100; second++) {
		for (int i = 0; i < 3; i++)
			turn(collector);
		move_to(collector, collector->now_ns, 1000);
	}
	requests = counts_of(collector)->requests;
	/* Five waits of 16 to 31 s in all, then some of 15 to 30 s. */
	assert_in_range(requests, 4, 12);
	assert_in_range(counts_of(collector)->failures, requests - 1, requests);
	assert_string_equal(otlp_client__reason(collector->client), "Connection refused");
	expect_line(collector, "Connection refused: trying again");
}

static void a_collector_that_never_answers_is_given_up(void **state)
{
	struct collector *collector = *state;

	collector->limits.request_ms = 100;
	open_client(collector, "");
	offer(collector, "{}", 1);
	expect_request(collector);
	expect_ended(collector, 0, 0, 1);
	assert_non_null(strstr(otlp_client__reason(collector->client), "no answer in time"));
}

/* The answer is much longer than what the client reads. */
static void an_endless_answer_is_cut(void **state)
{
	struct collector *collector = *state;
	static char page[1 << 20];

	memset(page, 'x', sizeof(page));
	open_client(collector, "");
	offer(collector, "{}", 1);
	expect_request(collector);
	answer_bytes(collector, "HTTP/1.1 200 OK\r\n\r\n", 19);
	answer_bytes(collector, page, sizeof(page));
	expect_ended(collector, 1, 0, 0);
	expect_line(collector, "accepted, but the answer is not a collector's");
}

static void endless_headers_are_no_answer(void **state)
{
	struct collector *collector = *state;
	char header[1024];

	open_client(collector, "");
	offer(collector, "{}", 1);
	expect_request(collector);
	answer_bytes(collector, "HTTP/1.1 200 OK\r\n", 17);
	memset(header, 'h', sizeof(header));
	memcpy(header, "X: ", 3);
	memcpy(header + sizeof(header) - 2, "\r\n", 2);
	/* Longer than our limit, shorter than that of newer versions of libcurl. */
	for (int i = 0; i < 100; i++)
		answer_bytes(collector, header, sizeof(header));
	answer_bytes(collector, "Content-Length: 0\r\n\r\n", 21);
	expect_ended(collector, 0, 0, 1);
}

static void the_port_of_rpc_is_named_where_nothing_answers(void **state)
{
	struct collector *collector = *state;

	open_client(collector, "");
	collector->endpoint.has_port_of_rpc = true;
	offer(collector, "{}", 1);
	expect_request(collector);
	close_connection(collector);
	expect_ended(collector, 0, 0, 1);
	expect_line(collector, "4317 is for OTLP/gRPC; OTLP/HTTP usually has 4318");
}

static void a_full_queue_loses_the_newest_and_counts(void **state)
{
	struct collector *collector = *state;

	open_client(collector, "");
	for (int i = 0; i < 3; i++)
		offer(collector, "1", OTLP_QUEUE_SPANS / 2);
	assert_int_equal(counts_of(collector)->queued, 3);
	assert_int_equal(counts_of(collector)->no_room, 1);
	expect_line(collector, "the queue is full: spans are lost");
	expect_request(collector);
	answer(collector, "200 OK", "{}");
	expect_ended(collector, 2, 0, 0);
	assert_string_equal(otlp_client__reason(collector->client), "the queue was full");
}

/* Answers the requests of a connection, each with the next of the answers. */
static pid_t serve(struct collector *collector, const char *const *answers)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid) {
		close(collector->listener);
		collector->listener = -1;
		return pid;
	}
	fcntl(collector->listener, F_SETFL, 0);
	while (*answers) {
		if (collector->connection < 0)
			collector->connection = accept(collector->listener, NULL, NULL);
		while (!has_request(collector))
			read_request(collector);
		dprintf(collector->connection, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n",
			*answers++);
		if (strcasestr(collector->request, "\r\nConnection: close\r\n"))
			close_connection(collector);
		collector->size = 0;
	}
	/* The server does not answer any more. */
	pause();
	_exit(0);
}

static void end_server(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static uint64_t finish_in_ns(struct collector *collector)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	otlp_client__finish(collector->client);
	return clock_ns(CLOCK_MONOTONIC) - start_ns;
}

static void finish_sends_what_waits(void **state)
{
	static const char *const answers[] = {"200 OK", "200 OK", NULL};
	struct collector *collector = *state;
	pid_t server;

	collector->limits.finish_ns = PATIENCE_NS;
	open_client(collector, "");
	server = serve(collector, answers);
	for (int i = 0; i < OTLP_BATCH_MAX + 1; i++)
		offer(collector, "1", 1);
	otlp_client__finish(collector->client);
	end_server(server);
	assert_int_equal(counts_of(collector)->sent, OTLP_BATCH_MAX + 1);
	expect_silence(collector);
}

static void finish_tries_again(void **state)
{
	static const char *const answers[] = {"503 Busy", "200 OK", NULL};
	struct collector *collector = *state;
	pid_t server;

	collector->limits.finish_ns = PATIENCE_NS;
	open_client(collector, "");
	server = serve(collector, answers);
	offer(collector, "1", 1);
	otlp_client__finish(collector->client);
	end_server(server);
	assert_int_equal(counts_of(collector)->sent, 1);
	assert_int_equal(counts_of(collector)->failures, 1);
}

static void finish_does_not_wait_for_ever(void **state)
{
	static const char *const answers[] = {NULL};
	struct collector *collector = *state;
	pid_t server;

	collector->limits.finish_ns = 100 * NS_PER_MS;
	open_client(collector, "");
	server = serve(collector, answers);
	offer(collector, "1", 1);
	/* Shorter than the limit of a request. */
	assert_in_range(finish_in_ns(collector), 100 * NS_PER_MS, 9 * NS_PER_S);
	end_server(server);
	assert_int_equal(counts_of(collector)->sent, 0);
	assert_string_equal(otlp_client__reason(collector->client), "no answer in time");
	expect_silence(collector);
}

/* After a failure there is one more attempt, at once, and no wait. */
static void finish_gives_up_soon_what_has_failed(void **state)
{
	struct collector *collector = *state;

	collector->limits.finish_ns = PATIENCE_NS;
	collector->limits.finish_failed_ns = 400 * NS_PER_MS;
	close(collector->listener);
	collector->listener = -1;
	open_client(collector, "");
	offer(collector, "1", 1);
	expect_ended(collector, 0, 0, 1);
	assert_true(finish_in_ns(collector) < PATIENCE_NS / 2);
	assert_int_equal(counts_of(collector)->requests, 2);
	assert_string_equal(otlp_client__reason(collector->client), "Connection refused");
}

/* A collector that says when to come again has not failed. */
static void finish_comes_again_when_it_was_told_to(void **state)
{
	static const char *const answers[] = {"200 OK", NULL};
	struct collector *collector = *state;
	pid_t server;

	collector->limits.finish_ns = PATIENCE_NS;
	collector->limits.finish_failed_ns = 100 * NS_PER_MS;
	open_client(collector, "");
	offer(collector, "1", 1);
	expect_request(collector);
	answer(collector, "429 x\r\nRetry-After: 1", "");
	expect_ended(collector, 0, 0, 1);
	close_connection(collector);
	collector->size = 0;
	server = serve(collector, answers);
	otlp_client__finish(collector->client);
	end_server(server);
	assert_int_equal(counts_of(collector)->sent, 1);
}

static void finish_does_not_wait_for_a_later_time(void **state)
{
	struct collector *collector = *state;

	collector->limits.finish_ns = collector->limits.finish_failed_ns = PATIENCE_NS;
	open_client(collector, "");
	offer(collector, "1", 1);
	expect_request(collector);
	answer(collector, "429 x\r\nRetry-After: 300", "");
	expect_ended(collector, 0, 0, 1);
	assert_true(finish_in_ns(collector) < PATIENCE_NS / 2);
	assert_int_equal(counts_of(collector)->requests, 1);
}

/* A window with many exports has many clients. */
static void finish_does_not_wait_where_another_just_did_in_vain(void **state)
{
	struct collector *collector = *state;
	struct otlp_client *first;

	collector->limits.finish_ns = 100 * NS_PER_MS;
	open_client(collector, "");
	offer(collector, "1", 1);
	assert_true(finish_in_ns(collector) >= 100 * NS_PER_MS);
	first = collector->client;
	collector->limits.finish_ns = PATIENCE_NS;
	collector->client =
		otlp_client__new(&collector->endpoint, &collector->health, &collector->limits);
	offer(collector, "2", 1);
	assert_true(finish_in_ns(collector) < PATIENCE_NS / 2);
	assert_int_equal(counts_of(collector)->requests, 1);
	otlp_client__free(first);
}

static void finish_waits_again_once_something_was_taken(void **state)
{
	static const char *const answers[] = {"503 Busy", "200 OK", NULL};
	struct collector *collector = *state;
	pid_t server;

	open_client(collector, "");
	collector->health.gave_up_ns = clock_ns(CLOCK_MONOTONIC);
	offer(collector, "1", 1);
	expect_request(collector);
	answer(collector, "200 OK", "");
	expect_ended(collector, 1, 0, 0);
	otlp_client__free(collector->client);
	close_connection(collector);
	collector->limits.finish_ns = PATIENCE_NS;
	collector->client =
		otlp_client__new(&collector->endpoint, &collector->health, &collector->limits);
	server = serve(collector, answers);
	offer(collector, "1", 1);
	otlp_client__finish(collector->client);
	end_server(server);
	assert_int_equal(counts_of(collector)->sent, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, collector_setup, collector_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_request_is_as_the_specification_has_it),
		TEST(a_large_request_does_not_ask_first),
		TEST(with_nothing_to_send_nothing_is_done),
		TEST(what_comes_meanwhile_goes_together),
		TEST(what_is_taken_in_part_is_not_sent_again),
		TEST(no_more_spans_are_rejected_than_were_sent),
		TEST(a_bad_request_is_not_sent_again),
		TEST(a_redirect_is_not_followed),
		TEST(retry_after_seconds_is_the_wait),
		TEST(retry_after_a_date_is_the_wait),
		TEST(an_impossible_retry_after_is_none),
		TEST(without_it_the_wait_is_about_a_second),
		TEST(trouble_is_said_once),
		TEST(trouble_that_comes_back_is_said_again),
		TEST(garbage_is_no_answer),
		TEST(half_an_answer_is_no_answer),
		TEST(half_a_header_is_no_answer),
		TEST(a_closed_connection_is_no_answer),
		TEST(a_closed_port_is_tried_again_less_and_less_often),
		TEST(a_collector_that_never_answers_is_given_up),
		TEST(an_endless_answer_is_cut),
		TEST(endless_headers_are_no_answer),
		TEST(the_port_of_rpc_is_named_where_nothing_answers),
		TEST(a_full_queue_loses_the_newest_and_counts),
		TEST(finish_sends_what_waits),
		TEST(finish_tries_again),
		TEST(finish_does_not_wait_for_ever),
		TEST(finish_gives_up_soon_what_has_failed),
		TEST(finish_comes_again_when_it_was_told_to),
		TEST(finish_does_not_wait_for_a_later_time),
		TEST(finish_does_not_wait_where_another_just_did_in_vain),
		TEST(finish_waits_again_once_something_was_taken),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
