/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "call_ring.h"
#include "clock.h"
#include "log.h"
#include "stream.h"
#include "syscalls.h"
#include "tid_map.h"

struct stream {
	struct loader *loader;
	struct shared *shared;
	struct traced_set *traced;
	struct call_ring *ring;
	const struct record_output *output;
	struct stream_options options;
	struct tid_map *named;	    /* threads whose name was sent, to stream itself */
	VEC(struct fbt_step) steps; /* held back until their calls are sent */
	struct fbt_lost lost;
	uint64_t steps_sent;
	uint64_t steps_dropped; /* no memory to hold them back */
};

struct stream *stream__new(struct loader *loader, struct traced_set *traced,
			   const struct record_output *output, const struct stream_options *options)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->loader = loader;
	stream->shared = loader__shared(loader);
	stream->traced = traced;
	stream->output = output;
	stream->options = *options;
	stream->named = tid_map__new();
	stream->ring = call_ring__new(stream->shared);
	if (!stream->named || !stream->ring) {
		stream__free(stream);
		return NULL;
	}
	return stream;
}

void stream__free(struct stream *stream)
{
	if (!stream)
		return;
	tid_map__free(stream->named);
	call_ring__free(stream->ring);
	vec_free(&stream->steps);
	free(stream);
}

static void drop_event(void *ctx, const struct fbt_header *event)
{
	(void)ctx;
	(void)event;
}

static void drop_call(void *ctx, const struct fbt_call *call)
{
	(void)ctx;
	(void)call;
}

void stream__discard(struct stream *stream)
{
	loader__drain_events(stream->loader, drop_event, NULL);
	call_ring__drain(stream->ring, UINT64_MAX, drop_call, NULL);
	call_ring__reset_lost(stream->ring);
	memset(stream->shared->control->lost, 0, sizeof(stream->shared->control->lost));
	stream->shared->control->walk_ns = 0;
}

static void take_event(void *ctx, const struct fbt_header *event)
{
	struct stream *stream = ctx;

	if (event->type == FBT_EVENT_STEP) {
		if (vec_push(&stream->steps, *(const struct fbt_step *)event))
			stream->steps_dropped++;
	} else if (event->type == FBT_EVENT_TARGET) {
		stream->options.on_process(stream->options.ctx, (const struct fbt_target *)event);
	}
}

static void send_call(void *ctx, const struct fbt_call *call)
{
	const struct stream *stream = ctx;

	stream->output->emit(stream->output->ctx, call, sizeof(*call));
}

static void name_thread(struct stream *stream, uint32_t tgid, uint32_t tid)
{
	if (tid_map__get(stream->named, tid))
		return;
	record_send_thread(stream->output, tgid, tid);
	if (tid_map__set(stream->named, tid, stream))
		log_debug("thread %u: no memory to remember its name", tid);
}

static void send_step(struct stream *stream, struct fbt_step *step)
{
	if (stream->options.steps_max && stream->steps_sent >= stream->options.steps_max)
		return;
	name_thread(stream, step->tgid, step->tid);
	record_send(stream->output, step, sizeof(*step), FBT_EVENT_STEP);
	stream->steps_sent++;
}

/* Its number may soon be another thread's. */
static void forget_thread(void *ctx, uint32_t tid)
{
	const struct stream *stream = ctx;

	tid_map__remove(stream->named, tid);
}

static void drain_until(struct stream *stream, uint64_t cutoff_ns)
{
	slots_forget_strangers(stream->shared);
	traced_set__mark_ended(stream->traced);
	loader__drain_events(stream->loader, take_event, stream);
	/* After the steps were read: every call of theirs has returned, and is in a ring. */
	if (cutoff_ns != UINT64_MAX)
		cutoff_ns = clock_ns(CLOCK_MONOTONIC);
	call_ring__drain(stream->ring, cutoff_ns, send_call, stream);
	vec_for_each (step, &stream->steps)
		send_step(stream, step);
	stream->steps.count = 0;
	traced_set__collect(stream->traced, forget_thread, stream);
}

void stream__drain(struct stream *stream)
{
	drain_until(stream, 0);
}

uint64_t stream__steps(const struct stream *stream)
{
	return stream->steps_sent;
}

uint64_t stream__lost_threads(const struct stream *stream)
{
	return __atomic_load_n(&stream->shared->control->lost[FBT_LOST_THREADS], __ATOMIC_RELAXED);
}

void stream__send_lost(struct stream *stream)
{
	struct fbt_lost lost = {.header = stream->lost.header};

	for (int i = 0; i < FBT_LOST_COUNT; i++)
		lost.count[i] =
			__atomic_load_n(&stream->shared->control->lost[i], __ATOMIC_RELAXED);
	lost.count[FBT_LOST_CALLS] += call_ring__lost(stream->ring);
	lost.count[FBT_LOST_THREADS] += traced_set__lost_threads(stream->traced);
	lost.count[FBT_LOST_STEPS] += stream->steps_dropped;
	if (!memcmp(lost.count, stream->lost.count, sizeof(lost.count)))
		return;
	stream->lost = lost;
	record_send(stream->output, &stream->lost, sizeof(stream->lost), FBT_EVENT_LOST);
}

static void send_open_call(struct stream *stream, const struct fbt_slot *slot, uint64_t now_ns)
{
	struct fbt_call call = {
		.header.flags = FBT_CALL_UNFINISHED,
		.tgid = slot->tgid,
		.tid = slot->tid,
		.start_ns = slot->start_ns,
		.duration_ns = now_ns - slot->start_ns,
		.nr = slot->nr,
	};

	record_send(stream->output, &call, sizeof(call), FBT_EVENT_CALL);
}

static void send_open_step(struct stream *stream, const struct fbt_slot *slot, uint64_t now_ns)
{
	struct fbt_step step = {
		.header.flags = slot->step_flags | FBT_STEP_OTHER_UNKNOWN | FBT_STEP_SCHED_UNKNOWN,
		.tgid = slot->tgid,
		.tid = slot->tid,
		.kind = slot->step_kind,
		.end = FBT_END_TRUNCATED,
		.start_ns = slot->step_start_ns,
		.end_ns = now_ns,
		.thread_ns = now_ns - slot->step_start_ns,
		.gap_ns = slot->gap_ns,
		.gap_syscall_ns = slot->gap_syscall_ns,
		.lost_calls = slot->lost_calls - slot->step_lost_calls,
		.arg_mask = slot->arg_mask,
	};

	memcpy(step.args, slot->args, sizeof(step.args));
	memcpy(step.sums, slot->sums, sizeof(step.sums));
	if (slot->start_ns && now_ns > slot->start_ns)
		step.sums[syscall_category(syscalls_arch(), slot->nr)].ns +=
			now_ns - slot->start_ns;
	send_step(stream, &step);
}

static void send_open(struct stream *stream, const struct fbt_slot *slot, uint64_t now_ns)
{
	bool in_step = slot->step_start_ns && slot->step_start_ns < now_ns;
	bool wants_calls = stream->options.detail == FBT_DETAIL_ALL ||
			   (stream->options.detail == FBT_DETAIL_ESCALATED && in_step);

	if (slot->start_ns && slot->start_ns < now_ns && wants_calls)
		send_open_call(stream, slot, now_ns);
	if (in_step)
		send_open_step(stream, slot, now_ns);
}

void stream__finish(struct stream *stream, uint64_t now_ns)
{
	drain_until(stream, UINT64_MAX);
	for (uint32_t i = 1; i < stream->shared->slot_count; i++) {
		const struct fbt_slot *slot = &stream->shared->slots[i];

		if (slot->state == FBT_SLOT_LIVE && slot->tgid)
			send_open(stream, slot, now_ns);
	}
	stream__send_lost(stream);
}
