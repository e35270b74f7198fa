/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/escalation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"

static const struct {
	const char *description;
	const char *otlp_value;
} reasons[ESCALATION_REASON_COUNT] = {
	[ESCALATION_NONE] = {"", ""},
	[ESCALATION_CV_EXCEEDED] = {"CV exceeded threshold (unstable performance)", "cv_exceeded"},
	[ESCALATION_EFFICIENCY_LOW] = {"Efficiency below threshold", "efficiency_low"},
	[ESCALATION_BOTH] = {"Both CV exceeded and efficiency low", "both"},
	[ESCALATION_MEMORY_CLIFF] = {"Memory cliff detected (sudden drop)", "memory_cliff"},
	[ESCALATION_GPU_TRANSFER_OVERHEAD] = {"GPU transfer overhead exceeded threshold",
					      "gpu_transfer_overhead"},
	[ESCALATION_MANUAL] = {"Manual escalation requested", "manual"},
};

const char *escalation_description(enum escalation_reason reason)
{
	return (unsigned int)reason < ESCALATION_REASON_COUNT ? reasons[reason].description : "";
}

const char *escalation_otlp_value(enum escalation_reason reason)
{
	return (unsigned int)reason < ESCALATION_REASON_COUNT ? reasons[reason].otlp_value : "";
}

struct escalation_thresholds escalation_default_thresholds(void)
{
	return (struct escalation_thresholds){
		.cv_percent = 15.0,
		.efficiency_percent = 25.0,
		.gpu_transfer_percent = 50.0,
		.memory_cliff_percent = 30.0,
		.rate_limit = 100,
		.rate_interval_ns = 60 * NS_PER_S,
	};
}

bool escalation_gpu_transfer_fires(const struct escalation_thresholds *thresholds,
				   double transfer_percent)
{
	return transfer_percent > thresholds->gpu_transfer_percent;
}

enum escalation_reason escalation_reason(const struct escalation_thresholds *thresholds,
					 double cv_percent, double efficiency_percent)
{
	bool cv = cv_percent > thresholds->cv_percent;
	bool efficiency = efficiency_percent < thresholds->efficiency_percent;

	if (cv && efficiency)
		return ESCALATION_BOTH;
	if (cv)
		return ESCALATION_CV_EXCEEDED;
	return efficiency ? ESCALATION_EFFICIENCY_LOW : ESCALATION_NONE;
}

bool trace_result_over_budget(const struct trace_result *result)
{
	return result->actual_us > result->budget_us;
}

double trace_result_efficiency(const struct trace_result *result)
{
	if (!result->actual_us)
		return 100.0;
	return (double)result->budget_us / (double)result->actual_us * 100.0;
}

void percent_text(char text[PERCENT_SIZE], double value)
{
	/* C may show the sign of a NaN, Rust does not. */
	if (isnan(value))
		snprintf(text, PERCENT_SIZE, "NaN");
	else
		snprintf(text, PERCENT_SIZE, "%.1f", value);
}

void trace_result_attributes(const struct trace_result *result, struct trace_attributes *attributes)
{
	const char *over_budget = trace_result_over_budget(result) ? "true" : "false";

	*attributes = (struct trace_attributes){
		.count = result->breakdown.unknown ? TRACE_ATTRIBUTES - 2 : TRACE_ATTRIBUTES,
		.items = {
			{"brick.name", result->brick_name},
			{"brick.budget_us", attributes->budget},
			{"brick.actual_us", attributes->actual},
			{"brick.efficiency", attributes->efficiency},
			{"brick.over_budget", over_budget},
			{"escalation.reason", escalation_otlp_value(result->reason)},
			{"syscall.overhead_percent", attributes->overhead},
			{"syscall.dominant", breakdown_dominant(&result->breakdown)},
		}};
	snprintf(attributes->budget, sizeof(attributes->budget), "%" PRIu64, result->budget_us);
	snprintf(attributes->actual, sizeof(attributes->actual), "%" PRIu64, result->actual_us);
	percent_text(attributes->efficiency, trace_result_efficiency(result));
	percent_text(attributes->overhead, breakdown_overhead_percent(&result->breakdown));
}

int breakdown_attributes(const struct breakdown *breakdown,
			 struct breakdown_attribute attributes[BREAKDOWN_ATTRIBUTES])
{
	static const char *const keys[FBT_CATEGORY_COUNT] = {
		[FBT_MMAP] = "syscall.mmap_us",	  [FBT_FUTEX] = "syscall.futex_us",
		[FBT_IOCTL] = "syscall.ioctl_us", [FBT_READ] = "syscall.read_us",
		[FBT_WRITE] = "syscall.write_us", [FBT_OTHER] = "syscall.other_us",
	};

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		attributes[i] = (struct breakdown_attribute){keys[i], breakdown->category_us[i]};
	attributes[FBT_CATEGORY_COUNT] =
		(struct breakdown_attribute){"syscall.compute_us", breakdown_compute_us(breakdown)};
	attributes[FBT_CATEGORY_COUNT + 1] =
		(struct breakdown_attribute){"syscall.total_us", breakdown->total_us};
	return breakdown->unknown ? 0 : BREAKDOWN_ATTRIBUTES;
}

void rate_limiter_init(struct rate_limiter *limiter, const struct escalation_thresholds *thresholds,
		       uint64_t now_ns)
{
	*limiter = (struct rate_limiter){
		.limit = thresholds->rate_limit,
		.interval_ns = thresholds->rate_interval_ns,
		.start_ns = now_ns,
	};
}

bool rate_limiter_allow(struct rate_limiter *limiter, uint64_t now_ns)
{
	/* A time before the start saturates, as Rust's Instant does. */
	uint64_t passed_ns = sub_saturating(now_ns, limiter->start_ns);

	if (passed_ns >= limiter->interval_ns) {
		limiter->count = 0;
		limiter->start_ns = now_ns;
	}
	if (limiter->count >= limiter->limit)
		return false;
	limiter->count++;
	return true;
}
