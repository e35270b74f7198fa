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

#include "otlp/otlp_endpoint.h"
#include "stderr_fixture.h"

static void expect_url(const char *text, const char *url, const char *label)
{
	struct otlp_endpoint endpoint = {0};

	assert_int_equal(otlp_endpoint_parse(&endpoint, text), 0);
	assert_string_equal(endpoint.url, url);
	assert_string_equal(endpoint.label, label);
	otlp_endpoint_clear(&endpoint);
	assert_null(endpoint.url);
}

static void a_bare_host_gets_the_path_of_traces(void **state)
{
	expect_url("http://host", "http://host/v1/traces", "http://host/v1/traces");
	expect_url("http://host/", "http://host/v1/traces", "http://host/v1/traces");
	expect_url("https://host:4318", "https://host:4318/v1/traces",
		   "https://host:4318/v1/traces");
	expect_url("HTTP://[::1]:4318/", "HTTP://[::1]:4318/v1/traces",
		   "HTTP://[::1]:4318/v1/traces");
	assert_silent(*state);
}

static void a_path_is_taken_as_it_is(void **state)
{
	expect_url("http://host/v1/traces", "http://host/v1/traces", "http://host/v1/traces");
	expect_url("http://host/otlp/", "http://host/otlp/", "http://host/otlp/");
	expect_url("http://host//", "http://host//", "http://host//");
	expect_url("http://host/a@b:c", "http://host/a@b:c", "http://host/a@b:c");
	assert_silent(*state);
}

/* The query is part of each request, but never printed. */
static void a_query_is_kept_for_the_collector_only(void **state)
{
	expect_url("http://host/x?key=secret", "http://host/x?key=secret", "http://host/x");
	expect_url("http://host?key=secret", "http://host/v1/traces?key=secret",
		   "http://host/v1/traces");
	expect_url("http://host/?key=a/b@c", "http://host/v1/traces?key=a/b@c",
		   "http://host/v1/traces");
	assert_silent(*state);
}

static void the_port_of_rpc_is_noticed(void **state)
{
	struct otlp_endpoint endpoint = {0};

	(void)state;
	assert_int_equal(otlp_endpoint_parse(&endpoint, "http://host:4317"), 0);
	assert_true(endpoint.has_port_of_rpc);
	otlp_endpoint_clear(&endpoint);
	assert_int_equal(otlp_endpoint_parse(&endpoint, "http://host:4318/4317"), 0);
	assert_false(endpoint.has_port_of_rpc);
	otlp_endpoint_clear(&endpoint);
}

static void expect_refused(void **state, const char *url, const char *part)
{
	struct stderr_fixture *fixture = *state;
	struct otlp_endpoint endpoint = {0};

	assert_int_equal(ftruncate(fixture->file, 0), 0);
	lseek(fixture->file, 0, SEEK_SET);
	assert_int_equal(otlp_endpoint_parse(&endpoint, url), -EINVAL);
	assert_one_line(fixture, part);
	assert_null(strstr(stderr_text(fixture), "secret"));
	otlp_endpoint_clear(&endpoint);
}

static void other_schemes_are_refused(void **state)
{
	static const char *const urls[] = {"",		"localhost:4318", "ftp://host",
					   "http:host", "http:/host",	  "file:///etc/passwd",
					   "grpc://h",	" http://host",	  "unix:/run/x"};

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		expect_refused(state, urls[i], "expected http://");
}

static void hosts_and_ports_that_are_none_are_refused(void **state)
{
	static const char *const urls[] = {
		"http://",	  "http:///x",	       "http://:4318",	"http://h:",
		"http://h:0",	  "http://h:65536",    "http://h:-1",	"http://h:4x",
		"http://h:1:2",	  "http://h:99999999", "http://[::1",	"http://[]:1",
		"http://[::1]x",  "http://a,b",	       "http://h%41",	"http://?x",
		"http://ho;st/x", "http://h:+1",       "http://h:1e3/", "http://[::1]:",
	};

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		expect_refused(state, urls[i], "expected a host and a port");
}

static void a_password_is_refused_and_not_shown(void **state)
{
	expect_refused(state, "http://me:secret@host/x", "a user or password is not allowed");
	expect_refused(state, "https://secret@host", "a user or password is not allowed");
	expect_refused(state, "ftp://me:secret@host", "expected http://");
	expect_refused(state, "me:secret@host:4318", "expected http://");
	expect_refused(state, "http:///me:secret@host", "expected a host");
	expect_refused(state, "http://me:secret\n@host", "printable");
}

static void fragments_and_controls_are_refused(void **state)
{
	char *much = malloc(4000);

	expect_refused(state, "http://host/x#y", "fragment");
	expect_refused(state, "http://host/x y", "printable");
	expect_refused(state, "http://host/\r\nX: y", "printable");
	expect_refused(state, "http://host/\x1b[31m", "printable");
	expect_refused(state, "http://h\xc3\xb6st/", "printable");
	expect_refused(state, "http://host\\@evil/", "printable");
	assert_non_null(much);
	memset(much, 'a', 3999);
	memcpy(much, "http://host/", 12);
	much[3999] = '\0';
	expect_refused(state, much, "2048");
	free(much);
}

static void expect_headers(const char *text, ...)
{
	struct otlp_endpoint endpoint = {0};
	const char *wanted;
	size_t count = 0;
	va_list args;

	assert_int_equal(otlp_endpoint_add_headers(&endpoint, text), 0);
	va_start(args, text);
	while ((wanted = va_arg(args, const char *))) {
		assert_true(count < endpoint.headers.count);
		assert_string_equal(endpoint.headers.items[count++], wanted);
	}
	va_end(args);
	assert_int_equal(endpoint.headers.count, count);
	otlp_endpoint_clear(&endpoint);
}

static void headers_are_names_and_values(void **state)
{
	expect_headers("api-key=abc", "api-key: abc", NULL);
	expect_headers(" a = b , c\t=\td ", "a: b", "c: d", NULL);
	expect_headers("a=b=c,d==", "a: b=c", "d: =", NULL);
	expect_headers("Authorization=Basic%20dTpw%3D,x=%2c%0009%41",
		       "Authorization: Basic dTpw=", NULL);
	expect_headers("", NULL);
	expect_headers(" , ,a=b,", "a: b", NULL);
	(void)state;
}

/* libcurl takes "a:" as an order not to send that header. */
static void an_empty_value_is_sent(void **state)
{
	expect_headers("a=,b=%20", "a;", "b;", NULL);
	assert_silent(*state);
}

static void unsound_entries_are_left_out_with_a_warning(void **state)
{
	struct stderr_fixture *fixture = *state;
	static const char *const entries[] = {
		"secret",
		"=secret",
		"se cret=x",
		"secret:=x",
		"a=secret%0d%0aX: y",
		"a=secret%",
		"a=secret%4",
		"a=secret%zz",
		"a=secret%00",
		"a=secret\x7f",
		"a=secret\nX: y",
		"content-length=secret5",
		"Transfer-Encoding=secret",
		"Content-Type=secret",
		"Host=secret",
		"\xc3\xb6=secret",
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		char text[128];

		assert_int_equal(ftruncate(fixture->file, 0), 0);
		lseek(fixture->file, 0, SEEK_SET);
		snprintf(text, sizeof(text), "good=1,%s,fine=2", entries[i]);
		expect_headers(text, "good: 1", "fine: 2", NULL);
		assert_one_line(fixture, "OTEL_EXPORTER_OTLP_HEADERS: entry 2 is left out: ");
		assert_null(strstr(stderr_text(fixture), "secret"));
	}
}

static void there_is_an_end_to_headers(void **state)
{
	struct otlp_endpoint endpoint = {0};
	char text[1024] = "";

	for (int i = 0; i < 65; i++)
		strcat(text, "a=b,");
	assert_int_equal(otlp_endpoint_add_headers(&endpoint, text), 0);
	assert_int_equal(endpoint.headers.count, 64);
	assert_one_line(*state, "entry 65 is left out: there are more than 64");
	otlp_endpoint_clear(&endpoint);
}

static void a_timeout_is_kept(void **state)
{
	struct otlp_endpoint endpoint = {0};

	otlp_endpoint_set_timeout(&endpoint, "2500");
	assert_int_equal(endpoint.timeout_ms, 2500);
	assert_silent(*state);
}

static void a_timeout_that_is_none_is_ignored_with_a_warning(void **state)
{
	static const char *const texts[] = {"", "10s", "0", "-5", "3600001"};
	struct otlp_endpoint endpoint = {0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		otlp_endpoint_set_timeout(&endpoint, texts[i]);
		assert_int_equal(endpoint.timeout_ms, 0);
	}
	assert_non_null(strstr(stderr_text(*state), "OTEL_EXPORTER_OTLP_TIMEOUT: "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

static void metrics_have_a_path_beside_that_of_traces(void **state)
{
	struct otlp_endpoint traces = {0}, metrics = {0};

	assert_int_equal(otlp_endpoint_parse(&traces, "https://box:1/a/v1/traces?key=x"), 0);
	assert_int_equal(otlp_endpoint_for_metrics(&metrics, &traces, NULL), 0);
	assert_string_equal(metrics.url, "https://box:1/a/v1/metrics?key=x");
	assert_string_equal(metrics.label, "https://box:1/a/v1/metrics");
	otlp_endpoint_clear(&metrics);
	assert_int_equal(otlp_endpoint_for_metrics(&metrics, &traces, "http://other/m"), 0);
	assert_string_equal(metrics.url, "http://other/m");
	otlp_endpoint_clear(&metrics);
	otlp_endpoint_clear(&traces);
	assert_int_equal(otlp_endpoint_parse(&traces, "http://box/in"), 0);
	assert_int_equal(otlp_endpoint_for_metrics(&metrics, &traces, NULL), -EINVAL);
	otlp_endpoint_clear(&traces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(metrics_have_a_path_beside_that_of_traces),
		TEST(a_bare_host_gets_the_path_of_traces),
		TEST(a_path_is_taken_as_it_is),
		TEST(a_query_is_kept_for_the_collector_only),
		TEST(the_port_of_rpc_is_noticed),
		TEST(other_schemes_are_refused),
		TEST(hosts_and_ports_that_are_none_are_refused),
		TEST(a_password_is_refused_and_not_shown),
		TEST(fragments_and_controls_are_refused),
		TEST(a_timeout_is_kept),
		TEST(a_timeout_that_is_none_is_ignored_with_a_warning),
		TEST(headers_are_names_and_values),
		TEST(an_empty_value_is_sent),
		TEST(unsound_entries_are_left_out_with_a_warning),
		TEST(there_is_an_end_to_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
