/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "option_judging.h"

#include <argp.h>
#include "evidence.h"
#include "option_table.h"
#include "option_value.h"

#define NS_PER_S 1000000000.0

static int parse_threshold(struct escalation_thresholds *thresholds, int key, const char *arg)
{
	uint64_t limit;
	int err;

	switch (key) {
	case KEY_CV_THRESHOLD:
		return option_parse_percent("--cv-threshold", arg, 10000, &thresholds->cv_percent);
	case KEY_EFFICIENCY_THRESHOLD:
		return option_parse_percent("--efficiency-threshold", arg, 100,
					    &thresholds->efficiency_percent);
	case KEY_GPU_TRANSFER_THRESHOLD:
		return option_parse_percent("--gpu-transfer-threshold", arg, 100,
					    &thresholds->gpu_transfer_percent);
	case KEY_MEMORY_CLIFF_THRESHOLD:
		return option_parse_percent("--memory-cliff-threshold", arg, 100,
					    &thresholds->memory_cliff_percent);
	case KEY_RATE_LIMIT:
		err = option_parse_range("--rate-limit", arg, 0, UINT32_MAX, &limit);
		if (!err)
			thresholds->rate_limit = (uint32_t)limit;
		return err;
	case KEY_RATE_INTERVAL:
		return option_parse_duration("--rate-interval", arg, NS_PER_S,
					     &thresholds->rate_interval_ns);
	}
	return ARGP_ERR_UNKNOWN;
}

int option_parse_judging(struct pipeline_options *options, int key, const char *arg)
{
	struct classify_options *classify = &options->classify;
	uint64_t number = 0;
	int err = 0;

	switch (key) {
	case KEY_CV_WINDOW:
		err = option_parse_range("--cv-window", arg, CLASS_KNOWN_STEPS, CLASSIFY_WINDOW_MAX,
					 &number);
		classify->window_steps = (uint32_t)number;
		return err;
	case KEY_BUDGET:
		return option_parse_range("--budget-us", arg, 1, 3600 * UINT64_C(1000000),
					  &classify->budget_us);
	case KEY_CLASS_BY:
		classify->class_by = arg;
		return 0;
	case KEY_CONTEXT:
		err = option_parse_range("--context", arg, 0, EVIDENCE_CONTEXT_MAX, &number);
		options->context = (uint32_t)number;
		return err;
	}
	return parse_threshold(&classify->thresholds, key, arg);
}
