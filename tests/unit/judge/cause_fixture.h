/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The parts of a step and its cause. The parts must sum up to the step. */
#ifndef FBT_CAUSE_FIXTURE_H
#define FBT_CAUSE_FIXTURE_H

#include "judged_fixture.h"

#include "judge/cause.h"
#include "judge/text.h"

static inline uint64_t sum_of(const struct cause_times *times)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += times->ns[i];
	return sum;
}

static inline struct cause_times split(const struct window *window, const struct step *step)
{
	struct cause_times times;

	cause_split(window, step, &times);
	assert_int_equal(sum_of(&times), step_total_ns(step));
	assert_int_equal(cause_work_ns(&times), times.ns[CAUSE_COMPUTE]);
	return times;
}

static inline struct cause find(const struct window *window, const struct step *step,
				const struct cause_times *usual)
{
	struct cause_times times = split(window, step);
	struct cause cause;

	cause_find(window, step, &times, usual, &cause);
	return cause;
}

static inline struct fbt_call *wait_on(struct step *step, uint64_t lock, uint64_t ns)
{
	struct fbt_call *call = add_call(step, "futex", ns);

	call->args[0] = lock;
	call->header.flags |= FBT_CALL_BLOCKED;
	return call;
}

#endif
