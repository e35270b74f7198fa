/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include "interval.h"
#include "log.h"
#include "syscalls.h"

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Time counts up to the boundary, calls count in the interval they return in. */
static void add_row(struct fbt_sum *sum, const struct process_sums *now,
		    const struct process_sums *before, uint32_t nr)
{
	uint64_t ns = since(now->rows[nr].ns + now->open_ns[nr],
			    before->rows[nr].ns + before->open_ns[nr]);

	sum->ns += ns;
	sum->calls += since(now->rows[nr].calls, before->rows[nr].calls);
	sum->errors += since(now->rows[nr].errors, before->rows[nr].errors);
	/* The longest call of the window so far is the interval's if it grew in it. */
	if (now->rows[nr].max_ns > before->rows[nr].max_ns && now->rows[nr].max_ns > sum->max_ns)
		sum->max_ns = now->rows[nr].max_ns;
}

static void send_step(const struct traced *traced, const struct process_sums *now, uint64_t now_ns,
		      bool truncated, const struct record_output *output)
{
	const struct process_sums *before = traced->previous;
	uint64_t syscall_ns = 0;
	struct fbt_step step = {
		.header.flags = FBT_STEP_NO_GAP | FBT_STEP_OTHER_UNKNOWN | FBT_STEP_SCHED_UNKNOWN,
		.tgid = traced->tgid,
		.tid = traced->tgid,
		.end = truncated ? FBT_END_TRUNCATED : FBT_END_RETURN,
		.start_ns = traced->previous_ns,
		.end_ns = now_ns,
		.thread_ns = since(now->thread_ns, before->thread_ns),
		.threads = now->threads,
	};

	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++)
		add_row(&step.sums[syscall_category(syscalls_arch(), nr)], now, before, nr);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		syscall_ns += step.sums[i].ns;
	/* A call and its thread's life are cut at slightly different instants. */
	if (step.thread_ns < syscall_ns)
		step.thread_ns = syscall_ns;
	record_send(output, &step, sizeof(step), FBT_EVENT_STEP);
}

int interval_send(struct traced_set *set, struct traced *traced, uint64_t now_ns, bool truncated,
		  const struct record_output *output)
{
	struct process_sums *now = malloc(sizeof(*now));

	if (!now)
		return -ENOMEM;
	traced_set__sum(set, traced, now_ns, now);
	if (traced->previous)
		send_step(traced, now, now_ns, truncated, output);
	free(traced->previous);
	traced->previous = now;
	traced->previous_ns = now_ns;
	return 0;
}

void interval_send_all(struct intervals *intervals, struct traced_set *set, uint64_t now_ns,
		       bool truncated, uint64_t steps_max, const struct record_output *output)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(set, i)); i++) {
		if (steps_max && intervals->steps >= steps_max)
			return;
		intervals->steps += traced->previous != NULL;
		if (interval_send(set, traced, now_ns, truncated, output))
			log_warn("process %u: no memory for an interval", traced->tgid);
	}
	/* The boundaries stay where they are even if one is served late. */
	while (intervals->next_ns <= now_ns)
		intervals->next_ns += intervals->length_ns;
}
