/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A verdict for tests of what shows verdicts. Include after cmocka.h. */
#ifndef FBT_ESCALATION_FIXTURE_H
#define FBT_ESCALATION_FIXTURE_H

#include <stdint.h>
#include "judge/classify.h"

#define FIRED(reason) (1u << ESCALATION_##reason)

/*
 * A llama_decode step of 312.4 ms against a budget of 21 ms: 291 ms of futex, usually 0.1 ms, 290.8
 * of them in one call.
 */
static inline struct escalation make_escalation(void)
{
	struct escalation escalation = {
		.number = 3,
		.judged = true,
		.fired = FIRED(EFFICIENCY_LOW),
		.cv_percent = 12.345678,
		.drop_percent = 93.3,
		.class_steps = 64,
		.budget_ns = 21000999,
		.usual_ns = 20500999,
		.result = {.brick_name = "llama_decode",
			   .budget_us = 21000,
			   .actual_us = 312400,
			   .reason = ESCALATION_EFFICIENCY_LOW},
		.cause = {.kind = CAUSE_LOCK_CONTENTION,
			  .usual_known = true,
			  .calls_known = true,
			  .time_ns = 291000999,
			  .usual_ns = 100999,
			  .calls = 12,
			  .blocked_known = true,
			  .blocked = 3,
			  .nr = 202,
			  .nr_calls = 12,
			  .nr_ns = 291000999,
			  .lock = 0x7f00aa10},
		.worst = {.nr = 202, .duration_ns = 290800999},
	};

	escalation.result.breakdown.total_us = 312400;
	escalation.result.breakdown.category_us[FBT_FUTEX] = 291000;
	escalation.result.breakdown.category_us[FBT_READ] = 400;
	return escalation;
}

static inline struct classifier *make_classifier(void)
{
	struct classify_options options = classify_default_options();
	struct classifier *classifier = classifier__new(&options);

	assert_non_null(classifier);
	return classifier;
}

#endif
