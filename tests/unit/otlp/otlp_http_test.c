/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "otlp/otlp_http.h"

#define NS_PER_S UINT64_C(1000000000)

static struct otlp_answer answer_of(long status, const char *body)
{
	struct otlp_answer answer;

	memset(&answer, 0xff, sizeof(answer));
	otlp_answer_read(&answer, status, body, strlen(body));
	return answer;
}

static void success_says_nothing(void **state)
{
	static const char *const bodies[] = {"",
					     "{}",
					     "{\"partialSuccess\":{}}",
					     "{\"partialSuccess\":{\"rejectedSpans\":\"0\"}}",
					     "{\"partialSuccess\":{\"errorMessage\":\"\"}}",
					     "{\"partialSuccess\":null}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct otlp_answer answer = answer_of(200, bodies[i]);

		assert_int_equal(answer.verdict, OTLP_TAKEN);
		assert_int_equal(answer.rejected_spans, 0);
		assert_false(answer.foreign);
		assert_string_equal(answer.reason, "");
	}
	assert_int_equal(answer_of(202, "").verdict, OTLP_TAKEN);
	assert_int_equal(answer_of(204, "").verdict, OTLP_TAKEN);
}

static void partial_success_counts_spans_as_string_or_number(void **state)
{
	struct otlp_answer answer = answer_of(
		200, "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}");

	(void)state;
	assert_int_equal(answer.verdict, OTLP_TAKEN);
	assert_int_equal(answer.rejected_spans, 3);
	assert_string_equal(answer.reason, "too old");
	answer = answer_of(200, "{\"partialSuccess\":{\"rejectedSpans\":4}}");
	assert_int_equal(answer.rejected_spans, 4);
	assert_string_equal(answer.reason, "");
}

static void what_a_hostile_collector_rejects_is_a_number(void **state)
{
	static const char *const counts[] = {"-1",  "\"-9\"", "\"x\"", "1.5",
					     "[7]", "{}",     "true",  "\"\""};
	char body[128];

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		snprintf(body, sizeof(body), "{\"partialSuccess\":{\"rejectedSpans\":%s}}",
			 counts[i]);
		assert_int_equal(answer_of(200, body).rejected_spans, 0);
	}
	assert_int_equal(
		answer_of(200, "{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999\"}}")
			.rejected_spans,
		INT64_MAX);
}

static void what_is_not_json_is_foreign(void **state)
{
	static const char *const bodies[] = {"<html>", "OK", "{", "[]", "null", "\x80\xff", "1"};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct otlp_answer answer = answer_of(200, bodies[i]);

		assert_int_equal(answer.verdict, OTLP_TAKEN);
		assert_true(answer.foreign);
		assert_string_equal(answer.reason, "");
	}
}

/* Only the codes of the specification's table. */
static void only_four_codes_are_tried_again(void **state)
{
	(void)state;
	for (long status = 0; status < 1000; status++) {
		enum otlp_verdict verdict = answer_of(status, "").verdict;

		if (status == 429 || status == 502 || status == 503 || status == 504)
			assert_int_equal(verdict, OTLP_RETRY);
		else if (status >= 200 && status < 300)
			assert_int_equal(verdict, OTLP_TAKEN);
		else
			assert_int_equal(verdict, OTLP_REFUSED);
	}
}

static void a_refusal_says_why(void **state)
{
	(void)state;
	assert_string_equal(answer_of(400, "{\"code\":3,\"message\":\"no spans\"}").reason,
			    "HTTP 400: no spans");
	assert_string_equal(answer_of(404, "<html>").reason, "HTTP 404");
	assert_string_equal(answer_of(503, "{\"message\":7}").reason, "HTTP 503");
	assert_string_equal(answer_of(301, "").reason,
			    "HTTP 301, a redirect, which is not followed");
}

static void a_long_message_is_cut(void **state)
{
	char body[4096];
	struct otlp_answer answer;
	size_t size = 4000;

	(void)state;
	memset(body, 'x', sizeof(body));
	memcpy(body, "{\"message\":\"", 12);
	memcpy(body + size - 2, "\"}", 3);
	otlp_answer_read(&answer, 500, body, size);
	assert_int_equal(strlen(answer.reason), sizeof(answer.reason) - 1);
}

static void deep_nesting_does_no_harm(void **state)
{
	char body[60001];

	(void)state;
	memset(body, '[', 60000);
	body[60000] = '\0';
	assert_true(answer_of(200, body).foreign);
}

static void waits_double_up_to_thirty_seconds(void **state)
{
	static const uint64_t seconds[] = {1, 2, 4, 8, 16, 30, 30, 30};

	(void)state;
	for (uint32_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		assert_int_equal(otlp_retry_ns(i + 1, 0, 0), seconds[i] * NS_PER_S);
	assert_int_equal(otlp_retry_ns(UINT32_MAX, 0, 0), 30 * NS_PER_S);
	assert_int_equal(otlp_retry_ns(0, 0, 0), NS_PER_S);
}

static void chance_takes_away_up_to_half_of_a_wait(void **state)
{
	uint64_t least = UINT64_MAX, most = 0;

	(void)state;
	for (uint32_t random = 0; random < 4096; random++) {
		uint64_t wait = otlp_retry_ns(9, 0, random * 1048583u);

		least = wait < least ? wait : least;
		most = wait > most ? wait : most;
	}
	assert_in_range(least, 15 * NS_PER_S, 16 * NS_PER_S);
	assert_in_range(most, 29 * NS_PER_S, 30 * NS_PER_S);
	assert_in_range(otlp_retry_ns(9, 0, UINT32_MAX), 15 * NS_PER_S, 30 * NS_PER_S);
}

static void the_collectors_wish_is_the_wait(void **state)
{
	(void)state;
	assert_int_equal(otlp_retry_ns(1, 7, 12345), 7 * NS_PER_S);
	assert_int_equal(otlp_retry_ns(9, 1, 0), NS_PER_S);
	assert_int_equal(otlp_retry_ns(1, -5, 0), NS_PER_S);
	assert_int_equal(otlp_retry_ns(1, 601, 0), OTLP_RETRY_MAX_NS);
	assert_int_equal(otlp_retry_ns(1, INT64_MAX, 0), OTLP_RETRY_MAX_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_says_nothing),
		cmocka_unit_test(partial_success_counts_spans_as_string_or_number),
		cmocka_unit_test(what_a_hostile_collector_rejects_is_a_number),
		cmocka_unit_test(what_is_not_json_is_foreign),
		cmocka_unit_test(only_four_codes_are_tried_again),
		cmocka_unit_test(a_refusal_says_why),
		cmocka_unit_test(a_long_message_is_cut),
		cmocka_unit_test(deep_nesting_does_no_harm),
		cmocka_unit_test(waits_double_up_to_thirty_seconds),
		cmocka_unit_test(chance_takes_away_up_to_half_of_a_wait),
		cmocka_unit_test(the_collectors_wish_is_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
