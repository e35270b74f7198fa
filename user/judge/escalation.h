/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Ferrum's escalation types in C (cbtop types.rs: EscalationReason, EscalationThresholds,
 * TraceResult; manager.rs: its rate limiter), bit for bit: names, defaults, texts, strict
 * comparisons. SyscallBreakdown is in model/step.h. Pure: no clock, no output.
 *
 * Percentages are 0 … 100 and beyond, not fractions.
 */
#ifndef FBT_JUDGE_ESCALATION_H
#define FBT_JUDGE_ESCALATION_H

#include <stdbool.h>
#include <stdint.h>
#include "model/step.h"

enum escalation_reason {
	ESCALATION_NONE = 0, /* ferrum's None */
	ESCALATION_CV_EXCEEDED,
	ESCALATION_EFFICIENCY_LOW,
	ESCALATION_BOTH,
	ESCALATION_MEMORY_CLIFF,
	ESCALATION_GPU_TRANSFER_OVERHEAD,
	ESCALATION_MANUAL,
	ESCALATION_REASON_COUNT,
};

/* "CV exceeded threshold (unstable performance)", …; "" of ESCALATION_NONE. */
const char *escalation_description(enum escalation_reason reason);

/*
 * "cv_exceeded", "efficiency_low", "both", "memory_cliff", "gpu_transfer_overhead", "manual"; "" of
 * ESCALATION_NONE.
 */
const char *escalation_otlp_value(enum escalation_reason reason);

struct escalation_thresholds {
	double cv_percent;	     /* 15 */
	double efficiency_percent;   /* 25 */
	double gpu_transfer_percent; /* 50 */
	double memory_cliff_percent; /* 30 */
	uint32_t rate_limit;	     /* 100 traces … */
	uint64_t rate_interval_ns;   /* … in 60 s */
};

struct escalation_thresholds escalation_default_thresholds(void);

/* The transfer share is above its threshold; NaN is not. */
bool escalation_gpu_transfer_fires(const struct escalation_thresholds *thresholds,
				   double transfer_percent);

/* Ferrum's escalation_reason: BOTH, CV_EXCEEDED, EFFICIENCY_LOW or NONE. NaN never fires. */
enum escalation_reason escalation_reason(const struct escalation_thresholds *thresholds,
					 double cv_percent, double efficiency_percent);

struct trace_result {
	const char *brick_name; /* borrowed: the step function's name */
	uint64_t budget_us;
	uint64_t actual_us;
	enum escalation_reason reason;
	struct breakdown breakdown;
	uint64_t timestamp_ns; /* CLOCK_MONOTONIC */
};

bool trace_result_over_budget(const struct trace_result *result);
double trace_result_efficiency(const struct trace_result *result); /* 100 if actual is 0 */

/* Room for any double in the form of Rust's {:.1}: 309 digits, a sign, a point and a tenth. */
#define PERCENT_SIZE 320

/* As Rust's format!("{:.1}"): "NaN", "inf", "-inf", else as printf does. */
void percent_text(char text[PERCENT_SIZE], double value);

#define TRACE_ATTRIBUTES 8

/*
 * Ferrum's 8 span attributes of a TraceResult, in the order of its source. Without the last two,
 * which are shares of system calls, if those were not traced.
 */
struct trace_attributes {
	int count;
	struct {
		const char *key;
		const char *value; /* points into this struct, or is result->brick_name */
	} items[TRACE_ATTRIBUTES];
	char budget[24];
	char actual[24];
	char efficiency[PERCENT_SIZE];
	char overhead[PERCENT_SIZE];
};

/* attributes must not be moved afterwards: it points into itself. */
void trace_result_attributes(const struct trace_result *result,
			     struct trace_attributes *attributes);

#define BREAKDOWN_ATTRIBUTES 8

/*
 * Ferrum's 8 attributes of a SyscallBreakdown: "syscall.mmap_us" … "syscall.total_us". Returns how
 * many there are: none if calls were not traced.
 */
struct breakdown_attribute {
	const char *key; /* static */
	uint64_t us;
};
int breakdown_attributes(const struct breakdown *breakdown,
			 struct breakdown_attribute attributes[BREAKDOWN_ATTRIBUTES]);

/*
 * Ferrum's rate limiter: a fixed window. A new window begins, and count is reset, only when
 * rate_limiter_allow is called. Times are CLOCK_MONOTONIC; one before the start counts as the
 * start.
 */
struct rate_limiter {
	uint32_t limit;
	uint64_t interval_ns;
	uint32_t count;
	uint64_t start_ns;
};

void rate_limiter_init(struct rate_limiter *limiter, const struct escalation_thresholds *thresholds,
		       uint64_t now_ns);
bool rate_limiter_allow(struct rate_limiter *limiter, uint64_t now_ns);

#endif
