/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "clock.h"
#include "log.h"
#include "otlp_answer.h"
#include "otlp_queue.h"
#include "otlp_request.h"

#define NS_PER_MS      UINT64_C(1000000)
#define NS_PER_S       UINT64_C(1000000000)
#define FINISH_POLL_MS 50
#define REASON_SIZE    320
/* A collector that let a client wait in vain may be back after this long. */
#define OTLP_FORGET_NS (30 * NS_PER_S)

/* Each is said once. */
enum trouble { TROUBLE_FAILED, TROUBLE_REJECTED, TROUBLE_FOREIGN };

struct otlp_client {
	const struct otlp_endpoint *endpoint;
	struct otlp_limits limits;
	struct otlp_counts counts;
	struct otlp_request *request; /* NULL until there is something to send */
	struct otlp_queue queue;
	size_t in_flight;  /* the first of the queue, in the request */
	uint32_t failures; /* in a row */
	uint64_t due_ns;   /* not before this */
	bool told_to_wait; /* due_ns is the collector's wish */
	uint32_t said;	   /* a bit per enum trouble */
	char reason[REASON_SIZE];
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

struct otlp_client *otlp_client__new(const struct otlp_endpoint *endpoint,
				     const struct otlp_limits *limits)
{
	struct otlp_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->endpoint = endpoint;
	client->limits = *limits;
	return client;
}

void otlp_client__free(struct otlp_client *client)
{
	if (!client)
		return;
	otlp_request__free(client->request);
	otlp_queue_clear(&client->queue);
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
	char *body;
	int err = 0;

	if (!client->request)
		err = otlp_request__new(&client->request, client->endpoint,
					client->limits.connect_ms, client->limits.request_ms);
	if (err)
		return err;
	if (count > OTLP_BATCH_MAX)
		count = OTLP_BATCH_MAX;
	err = otlp_queue_make_body(&client->queue, count, &body, &size);
	if (!err)
		err = otlp_request__begin(client->request, body, size);
	if (err)
		return err;
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

/* No answer, or one that wants the same to be sent again. */
static void take_failure(struct otlp_client *client, uint64_t now_ns, int64_t retry_after_s)
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

static void take_success(struct otlp_client *client, const struct otlp_answer *answer)
{
	uint64_t spans = otlp_queue_count_spans(&client->queue, client->in_flight);

	client->endpoint->health->gave_up_ns = 0;
	client->counts.sent += client->in_flight;
	client->counts.rejected_spans +=
		answer->rejected_spans < spans ? answer->rejected_spans : spans;
	if (answer->rejected_spans)
		warn_once(client, TROUBLE_REJECTED, "some spans are rejected: ", answer->reason);
	else if (answer->reason[0])
		warn_once(client, TROUBLE_REJECTED, "the collector warns: ", answer->reason);
	if (answer->foreign)
		warn_once(client, TROUBLE_FOREIGN,
			  "taken, but not answered as a collector does: is it one?", "");
}

static void take_answer(struct otlp_client *client, uint64_t now_ns,
			const struct otlp_result *result)
{
	struct otlp_answer answer;

	otlp_answer_read(&answer, result->status, result->answer, result->answer_size);
	if (answer.verdict != OTLP_TAKEN)
		set_reason(client, answer.reason, "");
	if (answer.verdict == OTLP_RETRY) {
		take_failure(client, now_ns, result->retry_after_s);
		return;
	}
	client->failures = 0;
	client->due_ns = 0;
	if (answer.verdict == OTLP_TAKEN) {
		take_success(client, &answer);
	} else {
		client->counts.refused += client->in_flight;
		warn_once(client, TROUBLE_FAILED, client->reason, ": not sent again");
	}
	otlp_queue_drop(&client->queue, client->in_flight);
}

static void go_on(struct otlp_client *client, uint64_t now_ns)
{
	struct otlp_result result;

	if (!otlp_request__go_on(client->request, &result))
		return;
	if (result.error) {
		set_reason(client, result.error,
			   client->endpoint->has_port_of_rpc
				   ? " (4317 is for OTLP/gRPC; OTLP/HTTP usually has 4318)"
				   : "");
		take_failure(client, now_ns, 0);
	} else {
		take_answer(client, now_ns, &result);
	}
	client->in_flight = 0;
}

int otlp_client__poll(struct otlp_client *client, uint64_t now_ns)
{
	int err;

	if (client->in_flight)
		go_on(client, now_ns);
	if (client->in_flight || !client->queue.items.count || now_ns < client->due_ns)
		return 0;
	err = begin_request(client);
	if (!err)
		go_on(client, now_ns);
	return err;
}

/*
 * One that has failed gets less time; none after another client has just waited in vain: a window
 * may have many exports.
 */
static uint64_t choose_patience_ns(const struct otlp_client *client, bool had_failed,
				   uint64_t start_ns)
{
	uint64_t gave_up_ns = client->endpoint->health->gave_up_ns;

	if (gave_up_ns && start_ns - gave_up_ns < OTLP_FORGET_NS)
		return 0;
	return had_failed && client->failures ? client->limits.finish_failed_ns
					      : client->limits.finish_ns;
}

/* For an answer, or the next attempt: not longer than until end_ns. */
static void wait_a_little(struct otlp_client *client, uint64_t now_ns, uint64_t end_ns)
{
	uint64_t wait_ms = (end_ns - now_ns) / NS_PER_MS + 1;

	otlp_request__wait(client->request,
			   wait_ms < FINISH_POLL_MS ? (int)wait_ms : FINISH_POLL_MS);
}

void otlp_client__finish(struct otlp_client *client)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), now_ns = start_ns, end_ns;
	bool had_failed = client->failures > 0;

	if (had_failed && !client->told_to_wait)
		client->due_ns = 0;
	while (client->queue.items.count) {
		if (otlp_client__poll(client, now_ns))
			break;
		end_ns = start_ns + choose_patience_ns(client, had_failed, start_ns);
		if (now_ns >= end_ns || (!client->in_flight && client->due_ns > end_ns))
			break;
		if (client->in_flight || now_ns < client->due_ns)
			wait_a_little(client, now_ns, end_ns);
		now_ns = clock_ns(CLOCK_MONOTONIC);
	}
	if (!client->queue.items.count)
		return;
	client->endpoint->health->gave_up_ns = now_ns;
	if (!client->failures)
		set_reason(client, "no answer in time", "");
}

const struct otlp_counts *otlp_client__counts(const struct otlp_client *client)
{
	return &client->counts;
}

const char *otlp_client__reason(const struct otlp_client *client)
{
	return client->reason;
}
