/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "clock.h"
#include "curl_library.h"
#include "log.h"
#include "otlp_answer.h"
#include "otlp_queue.h"

#define NS_PER_MS      UINT64_C(1000000)
#define NS_PER_S       UINT64_C(1000000000)
#define FINISH_POLL_MS 50

/* Each is said once. */
enum trouble { TROUBLE_FAILED, TROUBLE_REJECTED, TROUBLE_FOREIGN };

struct otlp_client {
	const struct otlp_endpoint *endpoint;
	struct otlp_limits limits;
	struct otlp_counts counts;
	struct curl_library curl;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct otlp_queue queue;
	size_t in_flight; /* the first of the queue, in the request */
	char *body;	  /* of the request */
	char answer[OTLP_ANSWER_MAX + 1];
	size_t answer_size;
	size_t header_bytes;
	bool answer_cut;
	bool headers_end;
	uint32_t failures; /* in a row */
	uint64_t due_ns;   /* not before this */
	bool told_to_wait; /* due_ns is the collector's wish */
	uint32_t said;	   /* a bit per enum trouble */
	char reason[CURL_ERROR_SIZE + 64];
	char curl_error[CURL_ERROR_SIZE];
};

struct otlp_limits otlp_default_limits(void)
{
	return (struct otlp_limits){
		.connect_ms = 3000,
		.request_ms = 10000,
		.finish_ns = 5 * NS_PER_S,
		.finish_failed_ns = NS_PER_S,
	};
}

/* What is less than all of it ends the transfer. */
static size_t take_body(char *data, size_t size, size_t count, void *ctx)
{
	struct otlp_client *client = ctx;
	size_t bytes = size * count, room = OTLP_ANSWER_MAX - client->answer_size;

	if (bytes > room) {
		client->answer_cut = true;
		bytes = room;
	}
	memcpy(client->answer + client->answer_size, data, bytes);
	client->answer_size += bytes;
	return bytes;
}

/*
 * libcurl keeps them: older ones without an end. And it takes an answer that ends within them for a
 * whole one, so their last line, the empty one, is looked for.
 */
static size_t take_header(char *data, size_t size, size_t count, void *ctx)
{
	struct otlp_client *client = ctx;
	size_t bytes = size * count;

	if (bytes >= 5 && !memcmp(data, "HTTP/", 5))
		client->headers_end = false;
	else if (bytes && (data[0] == '\r' || data[0] == '\n'))
		client->headers_end = true;
	client->header_bytes += bytes;
	return client->header_bytes > OTLP_ANSWER_MAX ? 0 : bytes;
}

static int add_header(struct otlp_client *client, const char *header)
{
	struct curl_slist *longer = client->curl.slist_append(client->headers, header);

	if (!longer)
		return -ENOMEM;
	client->headers = longer;
	return 0;
}

static int add_headers(struct otlp_client *client)
{
	int err = add_header(client, "Content-Type: application/json");

	/* A collector has no reason to see the header first, and some do not know how. */
	if (!err)
		err = add_header(client, "Expect:");
	vec_for_each (header, &client->endpoint->headers) {
		if (!err)
			err = add_header(client, *header);
	}
	return err;
}

/* All that is the same for every request. Only a lack of memory makes these fail. */
static int set_options(struct otlp_client *client)
{
	const struct curl_library *curl = &client->curl;
	CURL *easy = client->easy;
	CURLcode failed;

	failed = curl->easy_setopt(easy, CURLOPT_URL, client->endpoint->url);
	if (!failed)
		failed = curl->easy_setopt(easy, CURLOPT_HTTPHEADER, client->headers);
	if (!failed)
		failed = curl->easy_setopt(easy, CURLOPT_USERAGENT, "ferrum-bpftrace/" FBT_VERSION);
	curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, client->limits.connect_ms);
	curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, client->limits.request_ms);
	curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, client->curl_error);
	curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl->easy_setopt(easy, CURLOPT_WRITEDATA, client);
	curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	curl->easy_setopt(easy, CURLOPT_HEADERDATA, client);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Else, where a name server is silent, giving up would wait for the resolver's thread. */
	curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return failed ? -ENOMEM : 0;
}

int otlp_client__new(struct otlp_client **result, const struct otlp_endpoint *endpoint,
		     const struct otlp_limits *limits)
{
	struct otlp_client *client = calloc(1, sizeof(*client));
	int err;

	*result = NULL;
	if (!client)
		return -ENOMEM;
	client->endpoint = endpoint;
	client->limits = *limits;
	err = curl_library_load(&client->curl);
	if (err) {
		free(client);
		return err;
	}
	client->multi = client->curl.multi_init();
	client->easy = client->curl.easy_init();
	err = client->multi && client->easy ? add_headers(client) : -ENOMEM;
	if (!err)
		err = set_options(client);
	if (err) {
		otlp_client__free(client);
		return err;
	}
	*result = client;
	return 0;
}

static void end_request(struct otlp_client *client)
{
	if (client->in_flight)
		client->curl.multi_remove_handle(client->multi, client->easy);
	client->in_flight = 0;
	free(client->body);
	client->body = NULL;
}

void otlp_client__free(struct otlp_client *client)
{
	if (!client)
		return;
	end_request(client);
	otlp_queue_clear(&client->queue);
	if (client->easy)
		client->curl.easy_cleanup(client->easy);
	if (client->multi)
		client->curl.multi_cleanup(client->multi);
	client->curl.slist_free_all(client->headers);
	free(client);
}

static void set_reason(struct otlp_client *client, const char *reason, const char *advice)
{
	snprintf(client->reason, sizeof(client->reason), "%s%s", reason, advice);
}

int otlp_client__queue(struct otlp_client *client, char *text, size_t size, uint32_t spans)
{
	int err = otlp_queue_push(&client->queue, text, size, spans);

	client->counts.queued++;
	if (err != -ENOSPC)
		return err;
	client->counts.no_room++;
	if (!client->reason[0])
		set_reason(client, "they came faster than they could be sent", "");
	return 0;
}

static int begin_request(struct otlp_client *client)
{
	size_t size = 0, count = client->queue.items.count;
	int err;

	if (count > OTLP_BATCH_MAX)
		count = OTLP_BATCH_MAX;
	err = otlp_queue_make_body(&client->queue, count, &client->body, &size);
	if (err)
		return err;
	client->answer_size = client->header_bytes = 0;
	client->answer_cut = client->headers_end = false;
	client->curl_error[0] = '\0';
	client->curl.easy_setopt(client->easy, CURLOPT_POSTFIELDS, client->body);
	client->curl.easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	if (client->curl.multi_add_handle(client->multi, client->easy)) {
		end_request(client);
		return -ENOMEM;
	}
	client->in_flight = count;
	client->counts.requests++;
	return 0;
}

static void warn_once(struct otlp_client *client, enum trouble trouble, const char *what,
		      const char *then)
{
	if (!(client->said & 1u << trouble))
		log_warn("otlp: %s: %s%s", client->endpoint->label, what, then);
	client->said |= 1u << trouble;
}

static void fail_request(struct otlp_client *client, uint64_t now_ns, curl_off_t retry_after_s)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)now_ns;
	client->failures++;
	client->counts.failures++;
	client->told_to_wait = retry_after_s > 0;
	client->due_ns = now_ns + otlp_retry_ns(client->failures, retry_after_s, random);
	warn_once(client, TROUBLE_FAILED, client->reason, ": trying again");
}

/* No answer, or half of one: the specification wants the same sent again. */
static void take_failure(struct otlp_client *client, uint64_t now_ns, CURLcode code)
{
	const struct curl_library *curl = &client->curl;
	const char *reason = client->curl_error;
	long os_errno = 0;

	curl->easy_getinfo(client->easy, CURLINFO_OS_ERRNO, &os_errno);
	if (code == CURLE_COULDNT_CONNECT && os_errno)
		reason = strerror((int)os_errno);
	else if (!*reason)
		reason = curl->easy_strerror(code);
	set_reason(client, reason,
		   client->endpoint->has_port_of_rpc
			   ? " (4317 is for OTLP/gRPC; OTLP/HTTP usually has 4318)"
			   : "");
	fail_request(client, now_ns, 0);
}

static void take_success(struct otlp_client *client, const struct otlp_answer *answer)
{
	uint64_t spans = otlp_queue_count_spans(&client->queue, client->in_flight);

	client->failures = 0;
	client->due_ns = 0;
	client->counts.sent += client->in_flight;
	client->counts.rejected_spans +=
		answer->rejected_spans < spans ? answer->rejected_spans : spans;
	otlp_queue_drop(&client->queue, client->in_flight);
	if (answer->rejected_spans)
		warn_once(client, TROUBLE_REJECTED, "some spans are rejected: ", answer->reason);
	else if (answer->reason[0])
		warn_once(client, TROUBLE_REJECTED, "the collector warns: ", answer->reason);
	if (answer->foreign)
		warn_once(client, TROUBLE_FOREIGN,
			  "taken, but not answered as a collector does: is it one?", "");
}

static void take_answer(struct otlp_client *client, uint64_t now_ns)
{
	struct otlp_answer answer;
	curl_off_t retry_after_s = 0;
	long status = 0;

	client->curl.easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
	client->answer[client->answer_size] = '\0';
	otlp_answer_read(&answer, status, client->answer, client->answer_size);
	if (answer.verdict == OTLP_TAKEN) {
		take_success(client, &answer);
		return;
	}
	set_reason(client, answer.reason, "");
	if (answer.verdict == OTLP_RETRY) {
		client->curl.easy_getinfo(client->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
		fail_request(client, now_ns, retry_after_s);
		return;
	}
	client->failures = 0;
	client->due_ns = 0;
	client->counts.refused += client->in_flight;
	otlp_queue_drop(&client->queue, client->in_flight);
	warn_once(client, TROUBLE_FAILED, client->reason, ": not sent again");
}

static void take_result(struct otlp_client *client, uint64_t now_ns, CURLcode code)
{
	if (!code && !client->headers_end)
		code = CURLE_PARTIAL_FILE;
	if (!code || (code == CURLE_WRITE_ERROR && client->answer_cut))
		take_answer(client, now_ns);
	else
		take_failure(client, now_ns, code);
	end_request(client);
}

static void perform(struct otlp_client *client, uint64_t now_ns)
{
	CURLMsg *message;
	int count;

	client->curl.multi_perform(client->multi, &count);
	message = client->curl.multi_info_read(client->multi, &count);
	if (message && message->msg == CURLMSG_DONE)
		take_result(client, now_ns, message->data.result);
}

int otlp_client__poll(struct otlp_client *client, uint64_t now_ns)
{
	int err;

	if (client->in_flight)
		perform(client, now_ns);
	if (client->in_flight || !client->queue.items.count || now_ns < client->due_ns)
		return 0;
	err = begin_request(client);
	if (!err)
		perform(client, now_ns);
	return err;
}

/* For an answer, or the next attempt: not longer than until end_ns. */
static void wait_a_little(struct otlp_client *client, uint64_t now_ns, uint64_t end_ns)
{
	uint64_t wait_ms = (end_ns - now_ns) / NS_PER_MS + 1;

	client->curl.multi_poll(client->multi, NULL, 0,
				wait_ms < FINISH_POLL_MS ? (int)wait_ms : FINISH_POLL_MS, NULL);
}

void otlp_client__finish(struct otlp_client *client)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), now_ns = start_ns, end_ns;
	bool has_failed = client->failures > 0;

	if (has_failed && !client->told_to_wait)
		client->due_ns = 0;
	while (client->queue.items.count) {
		end_ns =
			start_ns + (has_failed && client->failures ? client->limits.finish_failed_ns
								   : client->limits.finish_ns);
		if (now_ns >= end_ns || (!client->in_flight && client->due_ns > end_ns) ||
		    otlp_client__poll(client, now_ns))
			break;
		if (client->in_flight || now_ns < client->due_ns)
			wait_a_little(client, now_ns, end_ns);
		now_ns = clock_ns(CLOCK_MONOTONIC);
	}
	if (client->queue.items.count && !client->failures)
		set_reason(client, "no answer in time", "");
	end_request(client);
}

const struct otlp_counts *otlp_client__counts(const struct otlp_client *client)
{
	return &client->counts;
}

const char *otlp_client__reason(const struct otlp_client *client)
{
	return client->reason;
}
