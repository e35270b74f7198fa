/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Each metric: its name, type, unit and meaning, and its values. docs/metrics.md has the same
 * table, which a unit test holds against this one. Pure.
 */
#ifndef FBT_METRICS_CATALOG_H
#define FBT_METRICS_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "metrics/tally.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* What is not in the tally. */
struct metrics_run {
	const char *tracer; /* label of every value; borrowed */
	uint64_t start_unix_ns;
	uint64_t now_unix_ns;
	bool is_up; /* the tool will go on */
	uint64_t cpu_ns;
	uint64_t memory_bytes;
	uint64_t write_errors;
};

struct metric_label {
	const char *name; /* static */
	const char *value;
};

#define METRIC_LABELS_MAX 5

struct metric_point {
	struct metric_label labels[METRIC_LABELS_MAX];
	size_t label_count;
	uint64_t ns;		       /* of a metric in seconds */
	uint64_t count;		       /* of any other one */
	const struct histogram *times; /* of a histogram */
};

struct metric {
	const char *name; /* without prefix, unit and _total */
	const char *unit; /* "seconds", "bytes", or "": a count */
	enum metric_type type;
	const char *help; /* one sentence, without quotes or backslashes */
	/* Calls take for each value, with pointers that are valid during the call. */
	void (*list)(const struct metrics_tally *tally, const struct metrics_run *run,
		     void (*take)(void *ctx, const struct metric_point *point), void *ctx);
};

extern const struct metric metric_catalog[];
extern const size_t metric_catalog_count;

#define METRIC_PREFIX	 "ferrum_bpftrace_"
#define METRIC_NAME_SIZE 96

/* "ferrum_bpftrace_steps_total". Writes to name and returns it. */
const char *metric_full_name(const struct metric *metric, char name[METRIC_NAME_SIZE]);

/* "counter", "gauge", "histogram". */
const char *metric_type_name(enum metric_type type);

#endif
