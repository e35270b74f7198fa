/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp/otlp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/version.h"
#include "judge/cause.h"
#include "judge/escalation.h"
#include "judge/frames.h"
#include "judge/hang.h"
#include "judge/look.h"
#include "judge/text.h"
#include "model/syscalls.h"
#include "otlp/otlp_http.h"
#include "output/slice.h"

#define CHILD_PERCENT	5 /* of a step; smaller categories get no span */
#define KIND_INTERNAL	1 /* SpanKind */
#define STATUS_ERROR	2 /* StatusCode */
#define ID_TEXT_SIZE	33
#define NUMBER_SIZE	24
#define DEFAULT_SPAN	"step"
#define UNKNOWN_SERVICE "unknown_service" /* as in the semantic conventions */
#define FINISH_POLL_MS	50
#define REASON_SIZE	320
/* After this time, a collector that did not answer is worth another wait. */
#define OTLP_FORGET_NS (30 * NS_PER_S)

static void begin_attribute(struct json *json, const char *key)
{
	json_object_begin(json, NULL);
	json_string(json, "key", key);
	json_object_begin(json, "value");
}

static void end_attribute(struct json *json)
{
	json_object_end(json);
	json_object_end(json);
}

static void put_text(struct json *json, const char *key, const char *value)
{
	begin_attribute(json, key);
	json_string(json, "stringValue", value);
	end_attribute(json);
}

static void put_bool(struct json *json, const char *key, bool value)
{
	begin_attribute(json, key);
	json_bool(json, "boolValue", value);
	end_attribute(json);
}

/* In OTLP/JSON, 64-bit integers are strings. */
static void put_decimal(struct json *json, const char *key, uint64_t value)
{
	char text[NUMBER_SIZE];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	json_string(json, key, text);
}

/* intValue is signed. */
static void put_number(struct json *json, const char *key, uint64_t value)
{
	begin_attribute(json, key);
	put_decimal(json, "intValue", value < INT64_MAX ? value : INT64_MAX);
	end_attribute(json);
}

static void put_id(struct json *json, const char *key, const uint8_t *id, size_t size)
{
	char text[ID_TEXT_SIZE];

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, sizeof(text) - 2 * i, "%02x", id[i]);
	json_string(json, key, text);
}

static void begin_span(struct json *json, const struct otlp_span_ids *ids, const uint8_t *id,
		       const uint8_t *parent, const char *name)
{
	json_object_begin(json, NULL);
	put_id(json, "traceId", ids->trace, sizeof(ids->trace));
	put_id(json, "spanId", id, sizeof(ids->span));
	if (parent)
		put_id(json, "parentSpanId", parent, sizeof(ids->span));
	json_string(json, "name", name);
	json_uint(json, "kind", KIND_INTERNAL);
}

static void put_times(struct json *json, const struct window *window, uint64_t start_ns,
		      uint64_t length_ns)
{
	uint64_t start = window__unix_ns(window, start_ns);

	put_decimal(json, "startTimeUnixNano", start);
	put_decimal(json, "endTimeUnixNano", add_saturating(start, length_ns));
}

/* What CPython kept the step from, where that is measured. */
static void put_stalls(struct json *json, const struct step *step)
{
	const struct fbt_stalls *stalls = &step->stalls.record;
	struct step_parts parts;

	step_split(step, &parts);
	if (step->stalls.gil_known)
		put_number(json, "step.gil_us", step_gil_ns(step, &parts) / NS_PER_US);
	if (!step->stalls.gc_known)
		return;
	put_number(json, "step.gc_us", step_gc_ns(step, &parts) / NS_PER_US);
	put_number(json, "step.gc_collections", stalls->gc_count);
	if (stalls->gc_longest_ns && stalls->gc_generation < FBT_GENERATION_UNKNOWN)
		put_number(json, "step.gc_generation", stalls->gc_generation);
}

/* Whom the step waited for, or what all others did. The stack of the waker is in the event. */
static bool is_about_others(const char *key)
{
	static const char *const prefixes[] = {"cpu_taken_", "holder_", "others_seen",
					       "peer_",	     "waker_",	"woken_"};

	if (!strncmp(key, "waker_stack", strlen("waker_stack")))
		return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(key, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* As in the profile, and by the same names. */
static void put_others(struct json *json, const struct window *window,
		       const struct escalation *escalation)
{
	struct escalation_fields fields;

	escalation_fields_fill(&fields, window, escalation);
	for (uint32_t i = 0; i < fields.fields.count; i++) {
		const struct json_field *field = &fields.fields.items[i];

		if (!is_about_others(field->key))
			continue;
		if (field->type == JSON_FIELD_UINT)
			put_number(json, field->key, field->u);
		else if (field->type == JSON_FIELD_BOOL)
			put_bool(json, field->key, field->b);
		else if (field->type == JSON_FIELD_STRING)
			put_text(json, field->key, field->s);
	}
}

static void put_attributes(struct json *json, const struct window *window, const struct step *step,
			   const struct escalation *escalation)
{
	struct breakdown_attribute parts[BREAKDOWN_ATTRIBUTES];
	char evidence[EVIDENCE_SIZE], fired[FIRED_SIZE];
	struct trace_attributes texts;
	int count;

	trace_result_attributes(&escalation->result, &texts);
	count = breakdown_attributes(&escalation->result.breakdown, parts);
	cause_describe(&escalation->cause, window, evidence, sizeof(evidence));
	json_array_begin(json, "attributes");
	for (int i = 0; i < texts.count; i++)
		put_text(json, texts.items[i].key, texts.items[i].value);
	for (int i = 0; i < count; i++)
		put_number(json, parts[i].key, parts[i].us);
	put_text(json, "escalation.cause", cause_name(escalation->cause.kind));
	put_text(json, "escalation.evidence", evidence);
	put_text(json, "escalation.fired", escalation_fired_text(escalation->fired, fired));
	if (escalation->repeated)
		put_bool(json, "escalation.repeated", true);
	if (escalation->as_usual)
		put_bool(json, "escalation.as_usual", true);
	put_stalls(json, step);
	put_others(json, window, escalation);
	put_number(json, "step.number", step->number);
	put_number(json, "thread.id", step->record.tid);
	json_array_end(json);
}

static void put_stack(struct json *json, const char *key, const char *unnamed_key,
		      const struct window *window, const struct fbt_stack *stack)
{
	char frames[FRAMES_SIZE], unnamed[UNNAMED_SIZE];

	if (!stack->count)
		return;
	frames_describe(stack, window, frames, sizeof(frames));
	put_text(json, key, frames);
	frames_list_unnamed(stack, window, unnamed, sizeof(unnamed));
	if (*unnamed)
		put_text(json, unnamed_key, unnamed);
}

/* An event where the longest call of the cause began, if it is known from where it was made. */
static void put_cause(struct json *json, const struct window *window,
		      const struct escalation *escalation)
{
	const struct cause *cause = &escalation->cause;
	const struct fbt_stack *stack = cause->stack.count ? &cause->stack : &cause->waker_stack;
	char label[NUMBER_SIZE];

	if (!stack->count)
		return;
	json_array_begin(json, "events");
	json_object_begin(json, NULL);
	put_decimal(json, "timeUnixNano", window__unix_ns(window, stack->start_ns));
	json_string(json, "name", "ferrum.cause");
	json_array_begin(json, "attributes");
	put_text(json, "cause", cause_name(cause->kind));
	put_number(json, "cause.us", cause->time_ns / NS_PER_US);
	put_text(json, "cause.call",
		 syscall_label((enum fbt_arch)window->record.arch, stack->nr, label));
	put_stack(json, "cause.stack", "cause.stack_unnamed", window, &cause->stack);
	put_stack(json, "cause.waker_stack", "cause.waker_stack_unnamed", window,
		  &cause->waker_stack);
	json_array_end(json);
	json_object_end(json);
	json_array_end(json);
}

static void put_step(struct json *json, const struct window *window, const struct step *step,
		     const struct escalation *escalation, const struct otlp_span_ids *ids)
{
	const struct trace_result *result = &escalation->result;
	const char *name = result->brick_name;

	begin_span(json, ids, ids->span, NULL, name && *name ? name : DEFAULT_SPAN);
	put_times(json, window, step->record.start_ns, step_wall_ns(step));
	put_attributes(json, window, step, escalation);
	put_cause(json, window, escalation);
	if (trace_result_over_budget(result)) {
		json_object_begin(json, "status");
		json_string(json, "message", escalation_description(result->reason));
		json_uint(json, "code", STATUS_ERROR);
		json_object_end(json);
	}
	json_object_end(json);
}

static bool has_child(const struct step *step, const struct fbt_sum *sum)
{
	return (unsigned __int128)sum->ns * 100 >
	       (unsigned __int128)step_total_ns(step) * CHILD_PERCENT;
}

static void put_child(struct json *json, const struct window *window, const struct step *step,
		      enum fbt_category category, const struct otlp_span_ids *ids)
{
	const struct fbt_sum *sum = &step->record.sums[category];
	uint64_t wall_ns = step_wall_ns(step);
	char name[32];

	snprintf(name, sizeof(name), "syscall.%s", category_name(category));
	begin_span(json, ids, ids->children[category], ids->span, name);
	put_times(json, window, step->record.start_ns, sum->ns < wall_ns ? sum->ns : wall_ns);
	json_array_begin(json, "attributes");
	put_number(json, "syscall.calls", sum->calls);
	put_number(json, "syscall.duration_us", sum->ns / NS_PER_US);
	put_bool(json, "syscall.aggregated", true);
	json_array_end(json);
	json_object_end(json);
}

static void put_resource(struct json *json, const struct window *window, uint32_t tgid,
			 const char *service)
{
	const struct process *process = window__process(window, tgid);

	if ((!service || !*service) && process)
		service = process->comm;
	if (!service || !*service)
		service = UNKNOWN_SERVICE;
	json_object_begin(json, "resource");
	json_array_begin(json, "attributes");
	put_text(json, "service.name", service);
	put_text(json, "host.name", window->host);
	put_number(json, "process.pid", tgid);
	json_array_end(json);
	json_object_end(json);
}

static void begin_spans(struct json *json, const struct window *window, uint32_t tgid,
			const char *service)
{
	json_object_begin(json, NULL);
	put_resource(json, window, tgid, service);
	json_array_begin(json, "scopeSpans");
	json_object_begin(json, NULL);
	json_object_begin(json, "scope");
	json_string(json, "name", "ferrum-bpftrace");
	json_string(json, "version", tool_version());
	json_object_end(json);
	json_array_begin(json, "spans");
}

static void end_spans(struct json *json)
{
	json_array_end(json);
	json_object_end(json);
	json_array_end(json);
	json_object_end(json);
}

uint32_t otlp_span_write(struct json *json, const struct window *window, const struct step *step,
			 const struct escalation *escalation, const char *service,
			 const struct otlp_span_ids *ids)
{
	uint32_t spans = 1;

	begin_spans(json, window, step->record.tgid, service);
	put_step(json, window, step, escalation, ids);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (!has_child(step, &step->record.sums[i]))
			continue;
		put_child(json, window, step, (enum fbt_category)i, ids);
		spans++;
	}
	end_spans(json);
	return spans;
}

/* As in hang_prof; and where the step's thread was. */
static void put_hang_attributes(struct json *json, const struct window *window,
				const struct fbt_hang *hang, const struct hang_args *args)
{
	const struct fbt_look_thread *seen = hang_own_thread(hang, window);
	struct fbt_stack stack;

	json_array_begin(json, "attributes");
	put_text(json, "brick.name", window__kind_name(window, hang->kind));
	put_text(json, "hang.evidence", args->evidence);
	put_number(json, "hang.open_us", (hang->time_ns - hang->step_start_ns) / NS_PER_US);
	if (*args->threads)
		put_text(json, "hang.threads", args->threads);
	if (args->call) {
		put_text(json, "hang.call", args->call);
		put_number(json, "hang.call_us", hang->call.duration_ns / NS_PER_US);
	}
	if (seen) {
		look_stack(seen, &stack);
		put_stack(json, "hang.stack", "hang.stack_unnamed", window, &stack);
	}
	put_number(json, "thread.id", hang->tid);
	json_array_end(json);
}

uint32_t otlp_hang_write(struct json *json, const struct window *window,
			 const struct fbt_hang *hang, const char *service,
			 const struct otlp_span_ids *ids)
{
	struct hang_args args;

	hang_args_fill(&args, window, hang);
	begin_spans(json, window, hang->tgid, service);
	begin_span(json, ids, ids->span, NULL, "hang");
	put_times(json, window, hang->step_start_ns, hang->time_ns - hang->step_start_ns);
	put_hang_attributes(json, window, hang, &args);
	json_object_begin(json, "status");
	json_string(json, "message", args.evidence);
	json_uint(json, "code", STATUS_ERROR);
	json_object_end(json);
	json_object_end(json);
	end_spans(json);
	return 1;
}

int otlp_queue_push(struct otlp_queue *queue, char *text, size_t size, uint32_t spans)
{
	struct otlp_item item = {text, size, spans};
	int err = -ENOSPC;

	if (queue->bytes + size <= OTLP_QUEUE_BYTES && queue->spans + spans <= OTLP_QUEUE_SPANS)
		err = vec_push(&queue->items, item);
	if (err) {
		free(text);
		return err;
	}
	queue->bytes += size;
	queue->spans += spans;
	return 0;
}

uint64_t otlp_queue_count_spans(const struct otlp_queue *queue, size_t count)
{
	uint64_t spans = 0;

	for (size_t i = 0; i < count; i++)
		spans += queue->items.items[i].spans;
	return spans;
}

int otlp_queue_make_body(const struct otlp_queue *queue, size_t count, char **body, size_t *size)
{
	struct json json = {.out = open_memstream(body, size)};
	bool failed;

	if (!json.out)
		return -ENOMEM;
	json_object_begin(&json, NULL);
	json_array_begin(&json, "resourceSpans");
	for (size_t i = 0; i < count; i++)
		json_raw(&json, NULL, queue->items.items[i].text);
	json_array_end(&json);
	json_object_end(&json);
	failed = ferror(json.out);
	if (!fclose(json.out) && !failed)
		return 0;
	free(*body);
	*body = NULL;
	return -ENOMEM;
}

void otlp_queue_drop(struct otlp_queue *queue, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct otlp_item *item = &queue->items.items[i];

		queue->bytes -= item->size;
		queue->spans -= item->spans;
		free(item->text);
	}
	queue->items.count -= count;
	if (queue->items.count)
		memmove(queue->items.items, queue->items.items + count,
			queue->items.count * sizeof(queue->items.items[0]));
}

void otlp_queue_clear(struct otlp_queue *queue)
{
	otlp_queue_drop(queue, queue->items.count);
	vec_free(&queue->items);
}

/*
 * Kinds of trouble, each of which is logged once; the first three again when they come back after
 * spans were taken, but not more often than each minute.
 */
enum trouble {
	TROUBLE_FAILED,
	TROUBLE_REFUSED,
	TROUBLE_FULL,
	TROUBLE_REJECTED,
	TROUBLE_FOREIGN,
};
#define TROUBLES_AGAIN (1u << TROUBLE_FAILED | 1u << TROUBLE_REFUSED | 1u << TROUBLE_FULL)
#define AGAIN_NS       (60 * NS_PER_S)

struct otlp_client {
	const struct otlp_endpoint *endpoint;
	struct otlp_health *health;
	struct otlp_limits limits;
	struct otlp_counts counts;
	struct otlp_request *request; /* NULL until there is something to send */
	struct otlp_queue queue;
	size_t in_flight;  /* items at the head of the queue that are in the request */
	uint32_t failures; /* in a row */
	uint64_t due_ns;   /* no attempt before this time */
	bool told_to_wait; /* due_ns is the collector's Retry-After */
	uint32_t said;	   /* bit n: trouble n was logged */
	uint64_t again_ns; /* before this time none of TROUBLES_AGAIN is logged again */
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
				     struct otlp_health *health, const struct otlp_limits *limits)
{
	struct otlp_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->endpoint = endpoint;
	client->health = health;
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

static void warn_once(struct otlp_client *client, enum trouble trouble, const char *what,
		      const char *then)
{
	if (!(client->said & 1u << trouble))
		log_warn("otlp: %s: %s%s", client->endpoint->label, what, then);
	client->said |= 1u << trouble;
}

int otlp_client__queue(struct otlp_client *client, char *text, size_t size, uint32_t spans)
{
	int err = otlp_queue_push(&client->queue, text, size, spans);

	client->counts.queued++;
	if (err != -ENOSPC)
		return err;
	client->counts.no_room++;
	if (!client->reason[0])
		set_reason(client, "the queue was full", "");
	warn_once(client, TROUBLE_FULL, "the queue is full", ": spans are lost");
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

/* Handles a missing answer, or one that asks for a retry. */
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

static void take_success(struct otlp_client *client, uint64_t now_ns,
			 const struct otlp_answer *answer)
{
	uint64_t spans = otlp_queue_count_spans(&client->queue, client->in_flight);

	if (client->said & TROUBLES_AGAIN && now_ns >= client->again_ns) {
		client->said &= ~TROUBLES_AGAIN;
		client->again_ns = now_ns + AGAIN_NS;
	}
	client->health->gave_up_ns = 0;
	client->counts.sent += client->in_flight;
	client->counts.rejected_spans +=
		answer->rejected_spans < spans ? answer->rejected_spans : spans;
	if (answer->rejected_spans)
		warn_once(client, TROUBLE_REJECTED, "some spans were rejected: ", answer->reason);
	else if (answer->reason[0])
		warn_once(client, TROUBLE_REJECTED, "the collector warns: ", answer->reason);
	if (answer->foreign)
		warn_once(client, TROUBLE_FOREIGN,
			  "accepted, but the answer is not a collector's: is it one?", "");
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
		take_success(client, now_ns, &answer);
	} else {
		client->counts.refused += client->in_flight;
		warn_once(client, TROUBLE_REFUSED, client->reason, ": not sent again");
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
 * How long to wait for the collector. A collector that has failed gets less time, unless it
 * has said when to come again; and none if another client has just waited in vain, because a window
 * may have many exports.
 */
static uint64_t choose_patience_ns(const struct otlp_client *client, bool had_failed,
				   uint64_t start_ns)
{
	uint64_t gave_up_ns = client->health->gave_up_ns;

	if (gave_up_ns && start_ns - gave_up_ns < OTLP_FORGET_NS)
		return 0;
	if (had_failed && client->failures && !client->told_to_wait)
		return client->limits.finish_failed_ns;
	return client->limits.finish_ns;
}

/* Waits for an answer or the next attempt, until end_ns at most. */
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
	client->health->gave_up_ns = now_ns;
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

struct otlp_sink {
	struct sink sink;
	const struct otlp_endpoint *endpoint;
	const char *service;
	struct otlp_client *client;
	bool has_hangs; /* among what was queued */
	struct hang_limit hangs;
};

static struct otlp_sink *to_otlp(struct sink *sink)
{
	return (struct otlp_sink *)sink;
}

static int poll_client(struct sink *sink)
{
	return otlp_client__poll(to_otlp(sink)->client, clock_ns(CLOCK_MONOTONIC));
}

/* What is written for the queue. */
struct piece {
	struct otlp_span_ids ids;
	struct json json;
	char *text;
	size_t size;
};

static int begin_piece(struct piece *piece)
{
	*piece = (struct piece){.text = NULL};
	if (getrandom(&piece->ids, sizeof(piece->ids), 0) != sizeof(piece->ids))
		return -EIO;
	piece->json.out = open_memstream(&piece->text, &piece->size);
	return piece->json.out ? 0 : -ENOMEM;
}

static int end_piece(struct sink *sink, struct piece *piece, uint32_t spans)
{
	bool failed = ferror(piece->json.out);
	int err;

	if (fclose(piece->json.out) || failed) {
		free(piece->text);
		return -ENOMEM;
	}
	err = otlp_client__queue(to_otlp(sink)->client, piece->text, piece->size, spans);
	return err ? err : poll_client(sink);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct piece piece;
	uint32_t spans;
	int err;

	if (escalation->suppressed)
		return 0;
	err = begin_piece(&piece);
	if (err)
		return err;
	spans = otlp_span_write(&piece.json, window, step, escalation, to_otlp(sink)->service,
				&piece.ids);
	return end_piece(sink, &piece, spans);
}

/* Those that are on stderr. */
static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	struct otlp_sink *otlp = to_otlp(sink);
	struct piece piece;
	uint32_t spans;
	int err;

	if (!hang_limit_take(&otlp->hangs, hang->time_ns))
		return 0;
	err = begin_piece(&piece);
	if (err)
		return err;
	otlp->has_hangs = true;
	spans = otlp_hang_write(&piece.json, window, hang, otlp->service, &piece.ids);
	return end_piece(sink, &piece, spans);
}

static void wait_for_collector(struct sink *sink)
{
	struct otlp_sink *otlp = to_otlp(sink);
	const struct otlp_counts *counts = otlp_client__counts(otlp->client);
	const char *label = otlp->endpoint->label;
	const char *what = otlp->has_hangs ? "escalations and hangs" : "escalations";

	otlp_client__finish(otlp->client);
	if (counts->rejected_spans)
		log_warn("otlp: %s rejected %llu spans", label,
			 (unsigned long long)counts->rejected_spans);
	if (counts->sent < counts->queued)
		log_warn("otlp: %llu of %llu %s were not sent: %s: %s",
			 (unsigned long long)(counts->queued - counts->sent),
			 (unsigned long long)counts->queued, what, label,
			 otlp_client__reason(otlp->client));
	else if (counts->sent)
		log_info("otlp: %llu of %llu %s were sent to %s", (unsigned long long)counts->sent,
			 (unsigned long long)counts->queued, what, label);
}

static void free_sink(struct sink *sink)
{
	otlp_client__free(to_otlp(sink)->client);
	free(sink);
}

void otlp_limits_shorten(struct otlp_limits *limits, long timeout_ms)
{
	uint64_t timeout_ns = (uint64_t)timeout_ms * NS_PER_MS;

	if (limits->connect_ms > timeout_ms)
		limits->connect_ms = timeout_ms;
	limits->request_ms = timeout_ms;
	if (limits->finish_ns > timeout_ns)
		limits->finish_ns = timeout_ns;
	if (limits->finish_failed_ns > timeout_ns)
		limits->finish_failed_ns = timeout_ns;
}

struct sink *sink_otlp__new(const struct otlp_endpoint *endpoint, struct otlp_health *health,
			    const char *service, bool hurry)
{
	struct otlp_sink *otlp = calloc(1, sizeof(*otlp));
	struct otlp_limits limits = otlp_default_limits();

	if (!otlp)
		return NULL;
	if (endpoint->timeout_ms)
		otlp_limits_shorten(&limits, endpoint->timeout_ms);
	if (hurry)
		limits.finish_ns = limits.finish_failed_ns;
	otlp->sink = (struct sink){
		.name = "otlp",
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.poll = poll_client,
		.wait = wait_for_collector,
		.free = free_sink,
	};
	otlp->endpoint = endpoint;
	otlp->service = service;
	otlp->client = otlp_client__new(endpoint, health, &limits);
	if (!otlp->client) {
		free(otlp);
		return NULL;
	}
	return &otlp->sink;
}
