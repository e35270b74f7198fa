/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A collector within the test. It listens, keeps the requests, and answers as the test says. now_ns
 * moves only when a test moves it, so waits between attempts take no real time. Include after
 * cmocka.h.
 */
#ifndef FBT_COLLECTOR_FIXTURE_H
#define FBT_COLLECTOR_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "otlp/otlp_http.h"
#include "otlp/otlp.h"
#include "stderr_fixture.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)
/* Real time to wait for something that must come. */
#define PATIENCE_NS (60 * NS_PER_S)

struct collector {
	struct stderr_fixture *errors; /* first member: stderr_fixture.h takes a void ** to it */
	int listener;
	int connection; /* -1: none */
	unsigned connections;
	uint16_t port;
	uint64_t now_ns;
	struct otlp_endpoint endpoint;
	struct otlp_health health;
	struct otlp_limits limits;
	struct otlp_client *client;
	char request[1 << 21];
	size_t size;
	char *body; /* within request, once the request is complete */
};

static inline int collector_setup(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct collector *collector = calloc(1, sizeof(*collector));
	socklen_t length = sizeof(address);

	if (!collector || stderr_setup((void **)&collector->errors))
		return -1;
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	collector->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(collector->listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(collector->listener, 8) ||
	    getsockname(collector->listener, (struct sockaddr *)&address, &length))
		return -1;
	collector->port = ntohs(address.sin_port);
	collector->connection = -1;
	collector->now_ns = clock_ns(CLOCK_MONOTONIC);
	collector->limits = otlp_default_limits();
	*state = collector;
	return 0;
}

static inline void close_connection(struct collector *collector)
{
	if (collector->connection >= 0)
		close(collector->connection);
	collector->connection = -1;
	collector->size = 0;
}

static inline int collector_teardown(void **state)
{
	struct collector *collector = *state;

	otlp_client__free(collector->client);
	otlp_endpoint_clear(&collector->endpoint);
	close_connection(collector);
	if (collector->listener >= 0)
		close(collector->listener);
	stderr_teardown((void **)&collector->errors);
	free(collector);
	return 0;
}

/* Opens the client for a path of the collector. */
static inline void open_client(struct collector *collector, const char *path)
{
	char url[128];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", collector->port, path);
	assert_int_equal(otlp_endpoint_parse(&collector->endpoint, url), 0);
	collector->client =
		otlp_client__new(&collector->endpoint, &collector->health, &collector->limits);
	assert_non_null(collector->client);
}

static inline void offer(struct collector *collector, const char *text, uint32_t spans)
{
	assert_int_equal(otlp_client__queue(collector->client, strdup(text), strlen(text), spans),
			 0);
}

static inline const struct otlp_counts *counts_of(const struct collector *collector)
{
	return otlp_client__counts(collector->client);
}

static inline void take_connection(struct collector *collector)
{
	int connection = accept4(collector->listener, NULL, NULL, SOCK_NONBLOCK);

	if (connection < 0)
		return;
	close_connection(collector);
	collector->connection = connection;
	collector->connections++;
}

static inline void read_request(struct collector *collector)
{
	ssize_t count = read(collector->connection, collector->request + collector->size,
			     sizeof(collector->request) - 1 - collector->size);

	if (count > 0)
		collector->size += (size_t)count;
	collector->request[collector->size] = '\0';
}

/* Lets the client and the collector work once. */
static inline void turn(struct collector *collector)
{
	assert_int_equal(otlp_client__poll(collector->client, collector->now_ns), 0);
	if (collector->listener >= 0)
		take_connection(collector);
	if (collector->connection >= 0)
		read_request(collector);
	poll(NULL, 0, 1);
}

static inline bool has_request(struct collector *collector)
{
	char *end = strstr(collector->request, "\r\n\r\n");
	char *length = strcasestr(collector->request, "\r\nContent-Length:");

	if (!collector->size || !end || !length || length > end)
		return false;
	collector->body = end + 4;
	return strlen(collector->body) == strtoul(length + 17, NULL, 10);
}

/* Waits for one whole request. */
static inline void expect_request(struct collector *collector)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	while (!has_request(collector)) {
		assert_true(clock_ns(CLOCK_MONOTONIC) < end_ns);
		turn(collector);
	}
}

/* Expects that no request comes although there is time for it. */
static inline void expect_no_request(struct collector *collector)
{
	uint64_t requests = counts_of(collector)->requests;

	for (int i = 0; i < 20; i++)
		turn(collector);
	assert_int_equal(counts_of(collector)->requests, requests);
}

/* Waits until that many requests have ended in each way. */
static inline void expect_ended(struct collector *collector, uint64_t sent, uint64_t refused,
				uint64_t failures)
{
	const struct otlp_counts *counts = counts_of(collector);
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	while (counts->sent < sent || counts->refused < refused || counts->failures < failures) {
		assert_true(clock_ns(CLOCK_MONOTONIC) < end_ns);
		turn(collector);
	}
	assert_int_equal(counts->sent, sent);
	assert_int_equal(counts->refused, refused);
	assert_int_equal(counts->failures, failures);
}

static inline void answer_bytes(struct collector *collector, const char *bytes, size_t size)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	size_t done = 0;

	collector->size = 0;
	while (done < size) {
		ssize_t count =
			send(collector->connection, bytes + done, size - done, MSG_NOSIGNAL);

		if (count < 0 && errno != EAGAIN)
			return;
		if (count > 0)
			done += (size_t)count;
		assert_true(clock_ns(CLOCK_MONOTONIC) < end_ns);
		assert_int_equal(otlp_client__poll(collector->client, collector->now_ns), 0);
	}
}

/* status: "200 OK", possibly followed by more header lines. */
static inline void answer(struct collector *collector, const char *status, const char *body)
{
	char text[4096];
	int size = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s",
			    status, strlen(body), body);

	answer_bytes(collector, text, (size_t)size);
}

#endif
