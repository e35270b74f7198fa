/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "escalation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

const char *escalation_description(enum escalation_reason reason)
{
	switch (reason) {
	case ESCALATION_CV_EXCEEDED:
		return "CV exceeded threshold (unstable performance)";
	case ESCALATION_EFFICIENCY_LOW:
		return "Efficiency below threshold";
	case ESCALATION_BOTH:
		return "Both CV exceeded and efficiency low";
	case ESCALATION_MEMORY_CLIFF:
		return "Memory cliff detected (sudden drop)";
	case ESCALATION_GPU_TRANSFER_OVERHEAD:
		return "GPU transfer overhead exceeded threshold";
	case ESCALATION_MANUAL:
		return "Manual escalation requested";
	case ESCALATION_NONE:
	case ESCALATION_REASON_COUNT:
		break;
	}
	return "";
}

const char *escalation_otlp_value(enum escalation_reason reason)
{
	switch (reason) {
	case ESCALATION_CV_EXCEEDED:
		return "cv_exceeded";
	case ESCALATION_EFFICIENCY_LOW:
		return "efficiency_low";
	case ESCALATION_BOTH:
		return "both";
	case ESCALATION_MEMORY_CLIFF:
		return "memory_cliff";
	case ESCALATION_GPU_TRANSFER_OVERHEAD:
		return "gpu_transfer_overhead";
	case ESCALATION_MANUAL:
		return "manual";
	case ESCALATION_NONE:
	case ESCALATION_REASON_COUNT:
		break;
	}
	return "";
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

bool escalation_should_trace(const struct escalation_thresholds *thresholds, double cv_percent,
			     double efficiency_percent)
{
	return cv_percent > thresholds->cv_percent ||
	       efficiency_percent < thresholds->efficiency_percent;
}

bool escalation_should_trace_gpu_transfer(const struct escalation_thresholds *thresholds,
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
	/* Rust shows no sign of it, and C may. */
	if (isnan(value))
		snprintf(text, PERCENT_SIZE, "NaN");
	else
		snprintf(text, PERCENT_SIZE, "%.1f", value);
}

void trace_result_attributes(const struct trace_result *result, struct trace_attributes *attributes)
{
	const char *over_budget = trace_result_over_budget(result) ? "true" : "false";

	*attributes = (struct trace_attributes){
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

void breakdown_attributes(const struct breakdown *breakdown,
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
	/* Rust's Instant saturates: a time before the start is no time after it. */
	uint64_t passed_ns = now_ns > limiter->start_ns ? now_ns - limiter->start_ns : 0;

	if (passed_ns >= limiter->interval_ns) {
		limiter->count = 0;
		limiter->start_ns = now_ns;
	}
	if (limiter->count >= limiter->limit)
		return false;
	limiter->count++;
	return true;
}

/* A result that outlives what its name was borrowed from. */
struct kept {
	struct trace_result result;
	char *name;
};

struct escalation_manager {
	struct escalation_thresholds thresholds;
	struct rate_limiter limiter;
	uint32_t first; /* the oldest */
	uint32_t count;
	struct kept history[ESCALATION_HISTORY];
};

struct escalation_manager *escalation_manager__new(const struct escalation_thresholds *thresholds,
						   uint64_t now_ns)
{
	struct escalation_manager *manager = calloc(1, sizeof(*manager));

	if (manager)
		escalation_manager__set_thresholds(manager, thresholds, now_ns);
	return manager;
}

void escalation_manager__free(struct escalation_manager *manager)
{
	if (!manager)
		return;
	escalation_manager__clear_history(manager);
	free(manager);
}

const struct escalation_thresholds *
escalation_manager__thresholds(const struct escalation_manager *manager)
{
	return &manager->thresholds;
}

void escalation_manager__set_thresholds(struct escalation_manager *manager,
					const struct escalation_thresholds *thresholds,
					uint64_t now_ns)
{
	manager->thresholds = *thresholds;
	rate_limiter_init(&manager->limiter, thresholds, now_ns);
}

static void drop_oldest(struct escalation_manager *manager)
{
	free(manager->history[manager->first].name);
	manager->first = (manager->first + 1) % ESCALATION_HISTORY;
	manager->count--;
}

bool escalation_manager__try_trace(struct escalation_manager *manager,
				   const struct trace_result *result)
{
	struct kept *kept;

	if (!rate_limiter_allow(&manager->limiter, result->timestamp_ns))
		return false;
	if (manager->count == ESCALATION_HISTORY)
		drop_oldest(manager);
	kept = &manager->history[(manager->first + manager->count++) % ESCALATION_HISTORY];
	*kept = (struct kept){.result = *result, .name = strdup(result->brick_name)};
	kept->result.brick_name = kept->name ? kept->name : "";
	return true;
}

uint32_t escalation_manager__trace_count(const struct escalation_manager *manager)
{
	return manager->limiter.count;
}

const struct trace_result *escalation_manager__history(const struct escalation_manager *manager,
						       uint32_t index)
{
	if (index >= manager->count)
		return NULL;
	return &manager->history[(manager->first + index) % ESCALATION_HISTORY].result;
}

void escalation_manager__clear_history(struct escalation_manager *manager)
{
	while (manager->count)
		drop_oldest(manager);
}
