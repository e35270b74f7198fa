/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_host_wait.h"

#include "gpu_interval.h"

bool gpu_calls_known(const struct step *step)
{
	if (!step->record.kind || step->calls_truncated || step->record.lost_calls)
		return false;
	/* The call that a step was cut off in has time, and is not counted. */
	if (!step->calls.count && step_syscall_ns(step))
		return false;
	return step->calls.count >= step_calls(step);
}

int gpu_spans_make(const struct step *step, gpu_span_vec *spans)
{
	struct gpu_interval free_time = {step->record.start_ns, step->record.end_ns};
	int err = 0;

	if (!gpu_calls_known(step))
		return 0;
	vec_for_each (call, &step->calls) {
		struct gpu_interval time = {call->start_ns,
					    gpu_ns_add(call->start_ns, call->duration_ns)};
		struct gpu_span span = {.time = gpu_interval_clip(time, free_time),
					.nr = call->nr,
					.blocked = call->header.flags & FBT_CALL_BLOCKED};

		if (!gpu_interval_ns(span.time))
			continue;
		free_time.start_ns = span.time.end_ns;
		err = vec_push(spans, span);
		if (err)
			break;
	}
	return err;
}

/* What shares go by. */
static uint64_t key_of(const struct gpu_span *span)
{
	return (uint64_t)span->nr << 1 | span->blocked;
}

void gpu_host_wait_begin(struct gpu_host_wait *wait, const gpu_span_vec *spans)
{
	wait->spans = spans;
	wait->next = 0;
	wait->blocked_ns = wait->syscall_ns = wait->user_ns = wait->unknown_ns = 0;
	shares_clear(&wait->calls);
}

void gpu_host_wait_add(struct gpu_host_wait *wait, struct gpu_interval interval, bool step_thread)
{
	uint64_t left_ns = gpu_interval_ns(interval);
	const gpu_span_vec *spans = wait->spans;

	if (!left_ns)
		return;
	if (!spans || !step_thread) {
		wait->unknown_ns += left_ns;
		return;
	}
	while (wait->next < spans->count &&
	       spans->items[wait->next].time.end_ns <= interval.start_ns)
		wait->next++;
	for (size_t i = wait->next; i < spans->count; i++) {
		const struct gpu_span *span = &spans->items[i];
		uint64_t ns = gpu_interval_ns(gpu_interval_clip(span->time, interval));

		if (span->time.start_ns >= interval.end_ns)
			break;
		*(span->blocked ? &wait->blocked_ns : &wait->syscall_ns) += ns;
		shares_add(&wait->calls, key_of(span), ns);
		left_ns -= ns;
	}
	wait->user_ns += left_ns;
}

static bool is_before(const struct share *a, const struct share *b)
{
	return a->ns != b->ns ? a->ns > b->ns : a->key < b->key;
}

static void list_calls(const struct shares *calls, struct gpu_figures *figures)
{
	struct share top[GPU_WAIT_CALLS_MAX + 1];
	size_t count = 0;

	for (uint32_t i = 0; i < calls->count; i++) {
		size_t at = count;

		for (; at && is_before(&calls->items[i], &top[at - 1]); at--)
			top[at] = top[at - 1];
		top[at] = calls->items[i];
		if (count < GPU_WAIT_CALLS_MAX)
			count++;
	}
	for (size_t i = 0; i < count; i++)
		figures->wait_calls[i] = (struct gpu_wait_call){.nr = (uint32_t)(top[i].key >> 1),
								.blocked = top[i].key & 1,
								.ns = top[i].ns};
}

void gpu_host_wait_end(const struct gpu_host_wait *wait, struct gpu_figures *figures)
{
	figures->wait_blocked_ns = wait->blocked_ns;
	figures->wait_syscall_ns = wait->syscall_ns;
	figures->wait_user_ns = wait->user_ns;
	figures->wait_unknown_ns = wait->unknown_ns;
	list_calls(&wait->calls, figures);
}
