/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp_span.h"

#include <stdio.h>
#include "cause.h"
#include "escalation.h"
#include "syscalls.h"

#define NS_PER_US	1000
#define CHILD_PERCENT	5
#define EVIDENCE_SIZE	512
#define KIND_INTERNAL	1 /* SpanKind */
#define STATUS_ERROR	2 /* StatusCode */
#define ID_TEXT_SIZE	33
#define NUMBER_SIZE	24
#define REASONS_SIZE	128
#define DEFAULT_SPAN	"step"
#define UNKNOWN_SERVICE "unknown_service" /* as the semantic conventions have it */

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

/* 64-bit integers are strings in this mapping. */
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

/* Of CLOCK_MONOTONIC. Before the epoch, which only a damaged capture says, is the epoch. */
static uint64_t to_unix_ns(const struct window *window, uint64_t time_ns)
{
	const struct fbt_window *record = &window->record;
	uint64_t unix_ns, before_ns;

	if (time_ns >= record->start_ns)
		return __builtin_add_overflow(record->realtime_ns, time_ns - record->start_ns,
					      &unix_ns)
			       ? UINT64_MAX
			       : unix_ns;
	before_ns = record->start_ns - time_ns;
	return record->realtime_ns > before_ns ? record->realtime_ns - before_ns : 0;
}

/* What all spans begin with. */
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
	uint64_t start = to_unix_ns(window, start_ns), end;

	if (__builtin_add_overflow(start, length_ns, &end))
		end = UINT64_MAX;
	put_decimal(json, "startTimeUnixNano", start);
	put_decimal(json, "endTimeUnixNano", end);
}

/* "cv_exceeded,efficiency_low": every trigger, the one that gave the reason too. */
static void join_fired(char text[REASONS_SIZE], uint32_t fired)
{
	size_t used = 0;

	text[0] = '\0';
	for (int reason = 1; reason < ESCALATION_REASON_COUNT; reason++) {
		if (fired & 1u << reason)
			used += (size_t)snprintf(
				text + used, REASONS_SIZE - used, "%s%s", used ? "," : "",
				escalation_otlp_value((enum escalation_reason)reason));
	}
}

static void put_attributes(struct json *json, const struct window *window, const struct step *step,
			   const struct escalation *escalation)
{
	struct breakdown_attribute parts[BREAKDOWN_ATTRIBUTES];
	char evidence[EVIDENCE_SIZE], fired[REASONS_SIZE];
	struct trace_attributes texts;

	trace_result_attributes(&escalation->result, &texts);
	breakdown_attributes(&escalation->result.breakdown, parts);
	cause_describe(&escalation->cause, window, evidence, sizeof(evidence));
	join_fired(fired, escalation->fired);
	json_array_begin(json, "attributes");
	for (int i = 0; i < TRACE_ATTRIBUTES; i++)
		put_text(json, texts.items[i].key, texts.items[i].value);
	for (int i = 0; i < BREAKDOWN_ATTRIBUTES; i++)
		put_number(json, parts[i].key, parts[i].us);
	put_text(json, "escalation.cause", cause_name(escalation->cause.kind));
	put_text(json, "escalation.evidence", evidence);
	put_text(json, "escalation.fired", fired);
	put_number(json, "step.number", step->number);
	put_number(json, "thread.id", step->record.tid);
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

uint32_t otlp_span_write(struct json *json, const struct window *window, const struct step *step,
			 const struct escalation *escalation, const char *service,
			 const struct otlp_span_ids *ids)
{
	uint32_t spans = 1;

	json_object_begin(json, NULL);
	put_resource(json, window, step->record.tgid, service);
	json_array_begin(json, "scopeSpans");
	json_object_begin(json, NULL);
	json_object_begin(json, "scope");
	json_string(json, "name", "ferrum-bpftrace");
	json_string(json, "version", FBT_VERSION);
	json_object_end(json);
	json_array_begin(json, "spans");
	put_step(json, window, step, escalation, ids);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (!has_child(step, &step->record.sums[i]))
			continue;
		put_child(json, window, step, (enum fbt_category)i, ids);
		spans++;
	}
	json_array_end(json);
	json_object_end(json);
	json_array_end(json);
	json_object_end(json);
	return spans;
}
