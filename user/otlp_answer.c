/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json_read.h"

#define NS_PER_S      UINT64_C(1000000000)
#define BACKOFF_MAX_S 30

static enum otlp_verdict judge_status(long status)
{
	if (status >= 200 && status < 300)
		return OTLP_TAKEN;
	if (status == 429 || status == 502 || status == 503 || status == 504)
		return OTLP_RETRY;
	return OTLP_REFUSED;
}

static struct json_object *get(struct json_object *object, const char *key, json_type type)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(object, json_type_object) ||
	    !json_object_object_get_ex(object, key, &value))
		return NULL;
	return json_object_is_type(value, type) ? value : NULL;
}

/* An int64 is a string in this mapping, but readers take numbers too. */
static uint64_t get_count(struct json_object *object, const char *key)
{
	struct json_object *value = get(object, key, json_type_int);
	int64_t count = 0;

	if (value)
		count = json_object_get_int64(value);
	value = get(object, key, json_type_string);
	if (value)
		count = strtoll(json_object_get_string(value), NULL, 10);
	return count > 0 ? (uint64_t)count : 0;
}

static void set_reason(struct otlp_answer *answer, const char *start, struct json_object *message)
{
	snprintf(answer->reason, sizeof(answer->reason), "%s%s%s", start,
		 *start && message ? ": " : "", message ? json_object_get_string(message) : "");
}

static void read_success(struct otlp_answer *answer, struct json_object *root)
{
	struct json_object *partial = get(root, "partialSuccess", json_type_object);
	struct json_object *message = get(partial, "errorMessage", json_type_string);

	answer->rejected_spans = get_count(partial, "rejectedSpans");
	if (message && !json_object_get_string_len(message))
		message = NULL;
	set_reason(answer, "", message);
}

void otlp_answer_read(struct otlp_answer *answer, long status, const char *body, size_t size)
{
	struct json_object *root = NULL;
	char error[64], start[64];
	bool sound = !json_read(body, size, &root, error, sizeof(error));

	*answer = (struct otlp_answer){.verdict = judge_status(status)};
	if (answer->verdict == OTLP_TAKEN) {
		answer->foreign = size && !json_object_is_type(root, json_type_object);
		read_success(answer, root);
	} else {
		snprintf(start, sizeof(start), "HTTP %ld%s", status,
			 status >= 300 && status < 400 ? ", a redirect, which is not followed"
						       : "");
		set_reason(answer, start, get(root, "message", json_type_string));
	}
	if (sound)
		json_object_put(root);
}

uint64_t otlp_retry_ns(uint32_t failures, int64_t retry_after_s, uint32_t random)
{
	uint64_t wait_ns = BACKOFF_MAX_S * NS_PER_S;

	if (retry_after_s > 0) {
		if ((uint64_t)retry_after_s >= OTLP_RETRY_MAX_NS / NS_PER_S)
			return OTLP_RETRY_MAX_NS;
		return (uint64_t)retry_after_s * NS_PER_S;
	}
	if (failures <= 5)
		wait_ns = NS_PER_S << (failures ? failures - 1 : 0);
	return wait_ns - wait_ns / 2 / 1024 * (random % 1025);
}
