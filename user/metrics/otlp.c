/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/otlp.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/version.h"

#define CUMULATIVE 2 /* AggregationTemporality */

struct writer_of_points {
	struct json *json;
	const struct metric *metric;
	const struct metrics_run *run;
};

/* In OTLP/JSON, 64-bit integers are strings. */
static void put_decimal(struct json *json, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	json_string(json, key, text);
}

static void put_text(struct json *json, const char *key, const char *value)
{
	json_object_begin(json, NULL);
	json_string(json, "key", key);
	json_object_begin(json, "value");
	json_string(json, "stringValue", value);
	json_object_end(json);
	json_object_end(json);
}

/* From the first bucket with a count to the last one. */
static void put_buckets(struct json *json, const struct histogram *times)
{
	int first = 0, end = HISTOGRAM_BUCKETS;

	while (first < end && !times->buckets[first])
		first++;
	while (end > first && !times->buckets[end - 1])
		end--;
	json_object_begin(json, "positive");
	json_int(json, "offset", first < end ? HISTOGRAM_OFFSET + first : 0);
	json_array_begin(json, "bucketCounts");
	for (int i = first; i < end; i++)
		put_decimal(json, NULL, times->buckets[i]);
	json_array_end(json);
	json_object_end(json);
}

static void put_histogram(struct json *json, const struct histogram *times)
{
	put_decimal(json, "count", times->count);
	json_double(json, "sum", (double)times->sum_ns / NS_PER_S);
	json_int(json, "scale", HISTOGRAM_SCALE);
	put_decimal(json, "zeroCount", times->below);
	json_double(json, "zeroThreshold", exp2(HISTOGRAM_MIN_EXP));
	put_buckets(json, times);
}

static void put_point(void *ctx, const struct metric_point *point)
{
	const struct writer_of_points *writer = ctx;
	struct json *json = writer->json;

	json_object_begin(json, NULL);
	json_array_begin(json, "attributes");
	for (size_t i = 0; i < point->label_count; i++)
		put_text(json, point->labels[i].name, point->labels[i].value);
	json_array_end(json);
	if (writer->metric->type != METRIC_GAUGE)
		put_decimal(json, "startTimeUnixNano", writer->run->start_unix_ns);
	put_decimal(json, "timeUnixNano", writer->run->now_unix_ns);
	if (writer->metric->type == METRIC_HISTOGRAM)
		put_histogram(json, point->times);
	else if (writer->metric->unit[0] == 's')
		json_double(json, "asDouble", (double)point->ns / NS_PER_S);
	else
		put_decimal(json, "asInt", point->count < INT64_MAX ? point->count : INT64_MAX);
	json_object_end(json);
}

static void put_metric(struct writer_of_points *writer, const struct metrics_tally *tally)
{
	static const char *const members[] = {"sum", "gauge", "exponentialHistogram"};
	const struct metric *metric = writer->metric;
	struct json *json = writer->json;
	char name[METRIC_NAME_SIZE];

	snprintf(name, sizeof(name), METRIC_PREFIX "%s", metric->name);
	json_object_begin(json, NULL);
	json_string(json, "name", name);
	json_string(json, "description", metric->help);
	json_string(json, "unit", *metric->unit == 's' ? "s" : *metric->unit == 'b' ? "By" : "");
	json_object_begin(json, members[metric->type]);
	json_array_begin(json, "dataPoints");
	metric->list(tally, writer->run, put_point, writer);
	json_array_end(json);
	if (metric->type != METRIC_GAUGE)
		json_int(json, "aggregationTemporality", CUMULATIVE);
	if (metric->type == METRIC_COUNTER)
		json_bool(json, "isMonotonic", true);
	json_object_end(json);
	json_object_end(json);
}

static void put_resource(struct json *json, const struct otlp_metrics_source *source)
{
	const char *service = source->service;

	json_object_begin(json, "resource");
	json_array_begin(json, "attributes");
	put_text(json, "service.name", service && *service ? service : "ferrum-bpftrace");
	put_text(json, "service.instance.id", source->instance);
	put_text(json, "host.name", source->host);
	json_array_end(json);
	json_object_end(json);
}

void otlp_metrics_write(struct json *json, const struct metrics_tally *tally,
			const struct metrics_run *run, const struct otlp_metrics_source *source)
{
	struct writer_of_points writer = {.json = json, .run = run};

	json_object_begin(json, NULL);
	json_array_begin(json, "resourceMetrics");
	json_object_begin(json, NULL);
	put_resource(json, source);
	json_array_begin(json, "scopeMetrics");
	json_object_begin(json, NULL);
	json_object_begin(json, "scope");
	json_string(json, "name", "ferrum-bpftrace");
	json_string(json, "version", tool_version());
	json_object_end(json);
	json_array_begin(json, "metrics");
	for (size_t i = 0; i < metric_catalog_count; i++) {
		writer.metric = &metric_catalog[i];
		put_metric(&writer, tally);
	}
	json_array_end(json);
	json_object_end(json);
	json_array_end(json);
	json_object_end(json);
	json_array_end(json);
	json_object_end(json);
}
