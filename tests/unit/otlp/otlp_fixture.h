/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A window with one process, one step and its escalation. Include after cmocka.h. */
#ifndef FBT_OTLP_FIXTURE_H
#define FBT_OTLP_FIXTURE_H

#include <string.h>
#include "judge/classify.h"
#include "model/step.h"
#include "model/window.h"

#define START_NS    UINT64_C(5000000000)
#define REALTIME_NS UINT64_C(1700000000000000000)
#define MS	    UINT64_C(1000000)

static inline struct window *otlp_window(const char *comm, const char *host)
{
	const char *strings[WINDOW_STRINGS] = {"pid42_1700000000000", "0.1.0", "6.1.0", host};
	struct fbt_window record = {
		.start_ns = START_NS, .realtime_ns = REALTIME_NS, .arch = FBT_ARCH_X86_64};
	struct fbt_target target = {.tgid = 42, .start_ns = START_NS};
	struct window *window = window__new();

	assert_non_null(window);
	assert_int_equal(window__open(window, &record, strings), 0);
	assert_int_equal(window__add_process(window, &target, comm, "/bin/engine", "engine"), 0);
	return window;
}

/* A step of 100 ms, 10 ms after the window's begin, with 60 ms in 3 futex calls. */
static inline struct step otlp_step(void)
{
	struct step step = {.number = 7, .complete = true};
	struct fbt_step *record = &step.record;

	record->tgid = 42;
	record->tid = 43;
	record->start_ns = START_NS + 10 * MS;
	record->end_ns = record->start_ns + 100 * MS;
	record->thread_ns = 100 * MS;
	record->sums[FBT_FUTEX] = (struct fbt_sum){.ns = 60 * MS, .calls = 3, .max_ns = 50 * MS};
	return step;
}

static inline struct escalation otlp_escalation(const struct step *step)
{
	struct escalation escalation = {
		.number = 1,
		.judged = true,
		.fired = 1u << ESCALATION_CV_EXCEEDED | 1u << ESCALATION_EFFICIENCY_LOW,
		.result = {.brick_name = "llama_decode",
			   .budget_us = 20000,
			   .actual_us = 100000,
			   .reason = ESCALATION_BOTH},
		.cause = {.kind = CAUSE_LOCK_CONTENTION, .time_ns = 60 * MS},
	};

	step_breakdown(step, &escalation.result.breakdown);
	return escalation;
}

#endif
