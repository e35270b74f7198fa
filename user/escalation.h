/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The seed's escalation types in C (cbtop types.rs: EscalationReason, EscalationThresholds,
 * TraceResult; manager.rs: TracingEscalation and its rate limiter), bit for bit: names, defaults,
 * texts, strict comparisons. SyscallBreakdown is in step.h. Pure: no clock, no output.
 *
 * Percent are 0 … 100 and beyond, not fractions.
 */
#ifndef FBT_ESCALATION_H
#define FBT_ESCALATION_H

#include <stdbool.h>
#include <stdint.h>
#include "step.h"

enum escalation_reason {
	ESCALATION_NONE = 0, /* the seed's None */
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

/* cv > T.cv || efficiency < T.efficiency; NaN never fires. */
bool escalation_should_trace(const struct escalation_thresholds *thresholds, double cv_percent,
			     double efficiency_percent);
bool escalation_should_trace_gpu_transfer(const struct escalation_thresholds *thresholds,
					  double transfer_percent);

/* The seed's escalation_reason: BOTH, CV_EXCEEDED, EFFICIENCY_LOW or NONE. */
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

/* The seed's 8 span attributes of a TraceResult, in the order of its source. */
struct trace_attributes {
	struct {
		const char *key;
		const char *value; /* points into this struct, or is result->brick_name */
	} items[TRACE_ATTRIBUTES];
	char budget[24];
	char actual[24];
	char efficiency[PERCENT_SIZE];
	char overhead[PERCENT_SIZE];
};

/* attributes must not be moved afterwards. */
void trace_result_attributes(const struct trace_result *result,
			     struct trace_attributes *attributes);

#define BREAKDOWN_ATTRIBUTES 8

/* The seed's 8 attributes of a SyscallBreakdown: "syscall.mmap_us" … "syscall.total_us". */
struct breakdown_attribute {
	const char *key; /* static */
	uint64_t us;
};
void breakdown_attributes(const struct breakdown *breakdown,
			  struct breakdown_attribute attributes[BREAKDOWN_ATTRIBUTES]);

/*
 * The seed's rate limiter: a fixed window that is only looked at when it is asked; the count stays
 * as it is until then. Times are CLOCK_MONOTONIC; one before the window's start is as the start.
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

/* The seed's manager: thresholds, limiter, and the last 1000 results. */
#define ESCALATION_HISTORY 1000
struct escalation_manager;

/* NULL: -ENOMEM. */
struct escalation_manager *escalation_manager__new(const struct escalation_thresholds *thresholds,
						   uint64_t now_ns);
void escalation_manager__free(struct escalation_manager *manager);
const struct escalation_thresholds *
escalation_manager__thresholds(const struct escalation_manager *manager);

/* Also begins a new limiter; the history stays. */
void escalation_manager__set_thresholds(struct escalation_manager *manager,
					const struct escalation_thresholds *thresholds,
					uint64_t now_ns);

/*
 * The seed's try_trace, at result->timestamp_ns: false if the limiter refuses, which leaves no
 * history. The name is copied: in the history brick_name is the manager's ("" if there was no
 * memory for it).
 */
bool escalation_manager__try_trace(struct escalation_manager *manager,
				   const struct trace_result *result);
uint32_t escalation_manager__trace_count(const struct escalation_manager *manager);

/* The index-th oldest that is kept, NULL behind the last. Valid until the next try_trace or clear.
 */
const struct trace_result *escalation_manager__history(const struct escalation_manager *manager,
						       uint32_t index);
void escalation_manager__clear_history(struct escalation_manager *manager);

#endif
