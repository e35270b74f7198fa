/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cause.h"

#include "call_walk.h"

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t excess(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Parts take from what is left: so their sum is the step, whatever the records say. */
static void give(struct cause_times *times, enum cause_kind kind, uint64_t ns, uint64_t *left_ns)
{
	uint64_t given = ns < *left_ns ? ns : *left_ns;

	times->ns[kind] += given;
	*left_ns -= given;
}

static void split_hidden(const struct window *window, const struct fbt_step *record,
			 struct cause_times *times, uint64_t *left_ns)
{
	unsigned __int128 faults_ns =
		(unsigned __int128)record->minor_faults * window->record.fault_ps / 1000;

	if (record->header.flags & FBT_STEP_SCHED_UNKNOWN)
		return;
	give(times, CAUSE_RUN_QUEUE, record->run_delay_ns, left_ns);
	give(times, CAUSE_PAGE_FAULTS, faults_ns > *left_ns ? *left_ns : (uint64_t)faults_ns,
	     left_ns);
}

/*
 * Entering a call, leaving it and being traced take time that no tracepoint sees: a loop of cheap
 * calls would look like work. Less than this between two calls is no time to work in.
 */
#define BETWEEN_CALLS_NS 1000

/* From the call before to this one, if that belongs to this one. Intervals have many threads. */
static uint64_t between_calls_ns(const struct step *step, const struct fbt_call *call,
				 uint64_t *last_ns)
{
	uint64_t gap_ns = excess(call->start_ns, *last_ns);

	*last_ns = add_saturating(call->start_ns, call->duration_ns);
	return step->record.kind && gap_ns < BETWEEN_CALLS_NS ? gap_ns : 0;
}

void cause_split(const struct window *window, const struct step *step, struct cause_times *times)
{
	static const enum cause_kind stand_ins[FBT_CATEGORY_COUNT] = {
		[FBT_MMAP] = CAUSE_ALLOCATION_CHURN, [FBT_FUTEX] = CAUSE_LOCK_CONTENTION,
		[FBT_IOCTL] = CAUSE_DRIVER_CALLS,    [FBT_READ] = CAUSE_FILE_IO,
		[FBT_WRITE] = CAUSE_FILE_IO,	     [FBT_OTHER] = CAUSE_OTHER_CALLS,
	};
	uint64_t known_ns[FBT_CATEGORY_COUNT] = {0};
	uint64_t left_ns = step_total_ns(step), between_ns[CAUSE_COUNT] = {0}, last_ns = 0;
	struct call_walk walk;

	*times = (struct cause_times){0};
	call_walk_begin(&walk, window, step, false);
	while (call_walk_next(&walk)) {
		uint64_t *known = &known_ns[walk.rule->category];

		give(times, walk.cause, walk.ns, &left_ns);
		give(times, CAUSE_COMPUTE, walk.covered_ns, &left_ns);
		*known = add_saturating(*known, add_saturating(walk.ns, walk.covered_ns));
		between_ns[walk.cause] += between_calls_ns(step, walk.call, &last_ns);
		times->threads_made += call_walk_made_thread(&walk);
		times->signals += (walk.rule->traits & CALL_SIGNAL) != 0;
	}
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		give(times, stand_ins[i], excess(step->record.sums[i].ns, known_ns[i]), &left_ns);
	times->covered_ns = times->ns[CAUSE_COMPUTE];
	split_hidden(window, &step->record, times, &left_ns);
	for (int i = 0; i < CAUSE_COUNT; i++)
		give(times, (enum cause_kind)i, between_ns[i], &left_ns);
	times->ns[CAUSE_COMPUTE] += left_ns;
}

uint64_t cause_work_ns(const struct cause_times *times)
{
	return times->ns[CAUSE_COMPUTE];
}
