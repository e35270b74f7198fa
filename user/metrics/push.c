/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/push.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "otlp/otlp.h"
#include "otlp/otlp_http.h"

#define FINISH_POLL_MS 50

struct metrics_push {
	const struct otlp_endpoint *endpoint;
	struct otlp_limits limits;
	struct otlp_request *request; /* NULL until there is something to send */
	char *waiting;		      /* until it is taken or refused; NULL: none */
	size_t waiting_size;
	bool is_sent; /* waiting, as it is */
	bool in_flight;
	bool is_broken; /* no request can be made: logged */
	bool has_warned;
	uint32_t failures; /* in a row */
	uint64_t due_ns;   /* no attempt before this time */
	char reason[320];
};

struct metrics_push *metrics_push__new(const struct otlp_endpoint *endpoint)
{
	struct metrics_push *push = calloc(1, sizeof(*push));

	if (!push)
		return NULL;
	push->endpoint = endpoint;
	push->limits = otlp_default_limits();
	if (endpoint->timeout_ms)
		otlp_limits_shorten(&push->limits, endpoint->timeout_ms);
	return push;
}

void metrics_push__free(struct metrics_push *push)
{
	if (!push)
		return;
	otlp_request__free(push->request);
	free(push->waiting);
	free(push);
}

void metrics_push__set(struct metrics_push *push, char *body, size_t size)
{
	free(push->waiting);
	push->waiting = body;
	push->waiting_size = size;
	push->is_sent = false;
}

static void warn_once(struct metrics_push *push, const char *what, const char *then)
{
	if (!push->has_warned)
		log_warn("otlp: %s: %s%s", push->endpoint->label, what, then);
	push->has_warned = true;
}

static void take_failure(struct metrics_push *push, uint64_t now_ns, int64_t retry_after_s)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)now_ns;
	push->failures++;
	push->due_ns = now_ns + otlp_retry_ns(push->failures, retry_after_s, random);
	warn_once(push, push->reason, ": metrics are sent again later");
}

/* There was an answer to what was sent: it is not sent again. */
static void drop_sent(struct metrics_push *push)
{
	if (!push->is_sent)
		return;
	free(push->waiting);
	push->waiting = NULL;
	push->is_sent = false;
}

static void take_answer(struct metrics_push *push, uint64_t now_ns,
			const struct otlp_result *result)
{
	struct otlp_answer answer;

	otlp_answer_read(&answer, result->status, result->answer, result->answer_size);
	if (answer.verdict != OTLP_RETRY)
		drop_sent(push);
	if (answer.verdict == OTLP_TAKEN) {
		push->failures = 0;
		push->due_ns = 0;
		push->reason[0] = '\0';
		if (answer.rejected_spans || answer.reason[0])
			warn_once(push, "some metrics were rejected: ", answer.reason);
		else if (answer.foreign)
			warn_once(push, "accepted, but the answer is not a collector's: is it one?",
				  "");
		else
			push->has_warned = false;
		return;
	}
	snprintf(push->reason, sizeof(push->reason), "%s", answer.reason);
	take_failure(push, now_ns, result->retry_after_s);
}

static void go_on(struct metrics_push *push, uint64_t now_ns)
{
	struct otlp_result result;

	if (!otlp_request__go_on(push->request, &result))
		return;
	push->in_flight = false;
	if (result.error) {
		snprintf(push->reason, sizeof(push->reason), "%s", result.error);
		take_failure(push, now_ns, 0);
	} else {
		take_answer(push, now_ns, &result);
	}
	push->is_sent = false;
}

/* A copy is sent, as the collector may ask for it again. */
static int send_copy(struct metrics_push *push)
{
	char *copy = malloc(push->waiting_size);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, push->waiting, push->waiting_size);
	return otlp_request__begin(push->request, copy, push->waiting_size);
}

static void begin(struct metrics_push *push, uint64_t now_ns)
{
	int err = 0;

	if (!push->request)
		err = otlp_request__new(&push->request, push->endpoint, push->limits.connect_ms,
					push->limits.request_ms);
	if (!err)
		err = send_copy(push);
	push->in_flight = push->is_sent = !err;
	push->is_broken = err && err != -ENOMEM;
	if (push->is_broken) {
		snprintf(push->reason, sizeof(push->reason), "nothing can be sent");
	} else if (err) {
		snprintf(push->reason, sizeof(push->reason), "no memory");
		take_failure(push, now_ns, 0);
	}
}

/* There is something that is neither on its way nor taken. */
static bool is_to_send(const struct metrics_push *push)
{
	return push->waiting && !push->is_sent && !push->is_broken;
}

void metrics_push__poll(struct metrics_push *push, uint64_t now_ns)
{
	if (push->in_flight)
		go_on(push, now_ns);
	if (push->in_flight || !is_to_send(push) || now_ns < push->due_ns)
		return;
	begin(push, now_ns);
	if (push->in_flight)
		go_on(push, now_ns);
}

bool metrics_push__is_sending(const struct metrics_push *push)
{
	return push->in_flight;
}

void metrics_push__finish(struct metrics_push *push)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t end_ns =
		now_ns + (push->failures ? push->limits.finish_failed_ns : push->limits.finish_ns);

	push->due_ns = 0;
	while ((push->in_flight || is_to_send(push)) && now_ns < end_ns) {
		metrics_push__poll(push, now_ns);
		if (push->failures && !push->in_flight && push->due_ns > end_ns)
			break;
		if (push->request && (push->in_flight || is_to_send(push)))
			otlp_request__wait(push->request, FINISH_POLL_MS);
		now_ns = clock_ns(CLOCK_MONOTONIC);
	}
	if (push->in_flight || push->waiting || push->failures)
		log_warn("otlp: the last metrics were not sent: %s: %s", push->endpoint->label,
			 push->reason[0] ? push->reason : "no answer in time");
}
