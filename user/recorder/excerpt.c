/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "recorder/excerpt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "fbt_explain.h"
#include "fbt_look.h"
#include "fbt_gpu.h"
#include "model/event.h"

/* Totals are few: their number is bounded by those of kinds and processes. */
#define BEFORE_BYTES (8u << 20)

static void keep_window(struct excerpt *excerpt, const struct fbt_header *record)
{
	if (excerpt->window)
		return;
	excerpt->window = malloc(record->size);
	if (excerpt->window)
		memcpy(excerpt->window, record, record->size);
	else
		excerpt->failed = true;
}

void excerpt_begin(struct excerpt *excerpt)
{
	const struct fbt_header key = {.type = FBT_EVENT_WINDOW, .size = sizeof(key)};
	const struct fbt_header *window = facts__find(excerpt->facts, &key);

	excerpt->start_ns = max_u64(excerpt->from_ns, excerpt->first_ns);
	if (window)
		keep_window(excerpt, window);
}

void excerpt_look(struct excerpt *excerpt, const struct fbt_header *record)
{
	const struct fbt_step *step = (const struct fbt_step *)record;
	const struct fbt_hang *hang = (const struct fbt_hang *)record;
	uint64_t window_ns;

	switch (record->type) {
	case FBT_EVENT_WINDOW:
		keep_window(excerpt, record);
		/* Nothing was dropped since it began. */
		window_ns = ((const struct fbt_window *)record)->start_ns;
		excerpt->start_ns =
			min_u64(excerpt->start_ns, max_u64(excerpt->from_ns, window_ns));
		break;
	case FBT_EVENT_STEP:
		if (step->end_ns >= excerpt->from_ns)
			excerpt->start_ns = min_u64(excerpt->start_ns, step->start_ns);
		break;
	case FBT_EVENT_HANG:
		if (hang->time_ns >= excerpt->from_ns)
			excerpt->start_ns = min_u64(excerpt->start_ns, hang->step_start_ns);
		break;
	}
}

static int write_bytes(const struct excerpt *excerpt, const void *data, size_t size)
{
	int err;

	errno = 0;
	if (excerpt->write(excerpt->ctx, data, size))
		return 0;
	err = errno ? -errno : -EIO;
	return err;
}

/* A writer that record_send_strings can use. */
struct emitter {
	const struct excerpt *excerpt;
	int err;
};

static void emit(void *ctx, const void *data, size_t size)
{
	struct emitter *emitter = ctx;

	if (!emitter->err)
		emitter->err = write_bytes(emitter->excerpt, data, size);
}

int excerpt_open(struct excerpt *excerpt, const char *tag, uint64_t realtime_ns)
{
	struct emitter emitter = {.excerpt = excerpt};
	const struct record_output output = {emit, &emitter};
	struct fbt_window window;
	const char *strings[4];
	int err;

	if (!excerpt->window)
		return excerpt->failed ? -ENOMEM : -ENODATA;
	excerpt->before = facts__new(BEFORE_BYTES);
	if (!excerpt->before)
		return -ENOMEM;
	memcpy(&window, excerpt->window, sizeof(window));
	for (unsigned int i = 0; i < 4; i++)
		strings[i] = decode_string(excerpt->window, i);
	strings[0] = tag;
	/* A hang may have begun before the window; there is nothing of it. */
	excerpt->start_ns = max_u64(excerpt->start_ns, window.start_ns);
	/* The part is all of it: totals count from its begin already. */
	excerpt->begun = excerpt->is_all = excerpt->start_ns == window.start_ns;
	window.start_ns = excerpt->start_ns;
	window.realtime_ns = realtime_ns - sub_saturating(excerpt->end_ns, excerpt->start_ns);
	err = record_send_strings(&output, &window, sizeof(window), FBT_EVENT_WINDOW, strings, 4);
	return err ? err : emitter.err;
}

static void lessen(__u64 *value, uint64_t before)
{
	*value = sub_saturating(*value, before);
}

static void subtract_cost(struct fbt_cost *cost, const struct fbt_cost *before)
{
	lessen(&cost->cpu_ns, before->cpu_ns);
	cost->collections = (uint32_t)sub_saturating(cost->collections, before->collections);
}

static void subtract_kind(struct fbt_header *record, const struct fbt_header *before)
{
	struct fbt_sampling *sampling = (struct fbt_sampling *)record;
	const struct fbt_sampling *sampled = (const struct fbt_sampling *)before;
	struct fbt_explained *explained = (struct fbt_explained *)record;
	const struct fbt_explained *was = (const struct fbt_explained *)before;

	switch (record->type) {
	case FBT_EVENT_SAMPLING:
		lessen(&sampling->watched_ns, sampled->watched_ns);
		lessen(&sampling->off_ns, sampled->off_ns);
		lessen(&sampling->calls, sampled->calls);
		lessen(&sampling->cut_steps, sampled->cut_steps);
		break;
	case FBT_EVENT_ENDS:
		lessen(&((struct fbt_ends *)record)->unseen_steps,
		       ((const struct fbt_ends *)before)->unseen_steps);
		break;
	case FBT_EVENT_PROBES:
		lessen(&((struct fbt_probes *)record)->cost_ns,
		       ((const struct fbt_probes *)before)->cost_ns);
		break;
	case FBT_EVENT_EXPLAIN:
		lessen(&explained->missed, was->missed);
		lessen(&explained->armed_ns, was->armed_ns);
		lessen(&explained->events, was->events);
		break;
	case FBT_EVENT_EXPLAIN_LOST:
		for (int i = 0; i < FBT_EXPLAIN_COUNT; i++)
			lessen(&((struct fbt_explain_lost *)record)->count[i],
			       ((const struct fbt_explain_lost *)before)->count[i]);
		break;
	}
}

/* Totals since arming. If it was armed again, there is nothing to subtract. */
static void subtract_flush(struct fbt_gpu_flush *flush, const struct fbt_gpu_flush *before)
{
	if (flush->records < before->records)
		return;
	lessen(&flush->records, before->records);
	lessen(&flush->cupti_dropped, before->cupti_dropped);
	lessen(&flush->ring_lost, before->ring_lost);
	lessen(&flush->no_buffer, before->no_buffer);
	lessen(&flush->unknown, before->unknown);
	lessen(&flush->shim_ns, before->shim_ns);
	lessen(&flush->clock_steps, before->clock_steps);
}

static void subtract_total(struct fbt_header *record, const struct fbt_header *before)
{
	struct fbt_stacks *stacks = (struct fbt_stacks *)record;
	struct fbt_looks *looks = (struct fbt_looks *)record;

	switch (record->type) {
	case FBT_EVENT_LOST:
		for (int i = 0; i < FBT_LOST_COUNT; i++)
			lessen(&((struct fbt_lost *)record)->count[i],
			       ((const struct fbt_lost *)before)->count[i]);
		break;
	case FBT_EVENT_UNSEEN:
		lessen(&((struct fbt_unseen *)record)->calls,
		       ((const struct fbt_unseen *)before)->calls);
		break;
	case FBT_EVENT_COST:
		subtract_cost((struct fbt_cost *)record, (const struct fbt_cost *)before);
		break;
	case FBT_EVENT_STACKS:
		lessen(&stacks->taken, ((const struct fbt_stacks *)before)->taken);
		lessen(&stacks->skipped, ((const struct fbt_stacks *)before)->skipped);
		lessen(&stacks->copy_ns, ((const struct fbt_stacks *)before)->copy_ns);
		break;
	case FBT_EVENT_LOOKS:
		lessen(&looks->taken, ((const struct fbt_looks *)before)->taken);
		lessen(&looks->skipped, ((const struct fbt_looks *)before)->skipped);
		lessen(&looks->stale, ((const struct fbt_looks *)before)->stale);
		lessen(&looks->blind, ((const struct fbt_looks *)before)->blind);
		lessen(&looks->cost_ns, ((const struct fbt_looks *)before)->cost_ns);
		break;
	case FBT_EVENT_GPU_FLUSH:
		subtract_flush((struct fbt_gpu_flush *)record,
			       (const struct fbt_gpu_flush *)before);
		break;
	default:
		subtract_kind(record, before);
	}
}

static bool is_total(uint32_t type)
{
	switch (type) {
	case FBT_EVENT_LOST:
	case FBT_EVENT_UNSEEN:
	case FBT_EVENT_COST:
	case FBT_EVENT_SAMPLING:
	case FBT_EVENT_ENDS:
	case FBT_EVENT_PROBES:
	case FBT_EVENT_STACKS:
	case FBT_EVENT_LOOKS:
	case FBT_EVENT_EXPLAIN:
	case FBT_EVENT_EXPLAIN_LOST:
	case FBT_EVENT_GPU_FLUSH:
		return true;
	default:
		return false;
	}
}

/* The largest record with totals. */
union total {
	struct fbt_header header;
	struct fbt_lost lost;
	struct fbt_cost cost;
	struct fbt_gpu_flush flush;
	struct fbt_explained explained;
	char bytes[256];
};

/* Writes a total as counted from the begin of the part. */
static int write_total(const struct excerpt *excerpt, const struct fbt_header *record)
{
	const struct fbt_header *before = facts__find(excerpt->before, record);
	union total total;

	if (record->size > sizeof(total))
		return 0;
	memcpy(&total, record, record->size);
	if (before)
		subtract_total(&total.header, before);
	return write_bytes(excerpt, &total, record->size);
}

/* What totals say beside their sums holds from the begin on. */
static int begin_part(struct excerpt *excerpt)
{
	const struct fbt_header *fact;
	int err = 0;

	if (excerpt->begun)
		return 0;
	excerpt->begun = true;
	for (size_t i = 0; (fact = facts__at(excerpt->before, i)) && !err; i++) {
		if (is_total(fact->type))
			err = write_total(excerpt, fact);
	}
	return err;
}

/* When what a record is about began; 0: it is not about a time. */
static uint64_t time_of(const struct fbt_header *record)
{
	switch (record->type) {
	case FBT_EVENT_STEP:
		return ((const struct fbt_step *)record)->start_ns;
	case FBT_EVENT_CALL:
		return ((const struct fbt_call *)record)->start_ns;
	case FBT_EVENT_WAKE:
		return ((const struct fbt_wake *)record)->start_ns;
	case FBT_EVENT_STACK:
		return ((const struct fbt_stack *)record)->start_ns;
	case FBT_EVENT_STALLS:
		return ((const struct fbt_stalls *)record)->start_ns;
	case FBT_EVENT_GAP:
		return ((const struct fbt_gap *)record)->start_ns;
	case FBT_EVENT_TAKEN:
		return ((const struct fbt_taken *)record)->start_ns;
	case FBT_EVENT_WOKEN:
		return ((const struct fbt_woken *)record)->start_ns;
	case FBT_EVENT_SAMPLES:
		return ((const struct fbt_samples *)record)->start_ns;
	case FBT_EVENT_FAULT_SITES:
		return ((const struct fbt_fault_sites *)record)->start_ns;
	case FBT_EVENT_STOP_SENDER:
		return ((const struct fbt_stop_sender *)record)->time_ns;
	case FBT_EVENT_LOOK:
		return ((const struct fbt_look *)record)->start_ns;
	case FBT_EVENT_LOOK_THREAD:
		return ((const struct fbt_look_thread *)record)->start_ns;
	case FBT_EVENT_PEER:
		return ((const struct fbt_peer *)record)->step_start_ns;
	case FBT_EVENT_STOP:
		return ((const struct fbt_stop *)record)->time_ns;
	case FBT_EVENT_HANG:
		return ((const struct fbt_hang *)record)->time_ns;
	case FBT_EVENT_MANUAL:
		return ((const struct fbt_manual *)record)->time_ns;
	case FBT_EVENT_CLOCK:
		return ((const struct fbt_clock *)record)->time_ns;
	case FBT_EVENT_GPU_WORK:
		return ((const struct fbt_gpu_work *)record)->start_ns;
	case FBT_EVENT_GPU_API:
		return ((const struct fbt_gpu_api *)record)->start_ns;
	case FBT_EVENT_GPU_SYNC:
		return ((const struct fbt_gpu_sync *)record)->start_ns;
	case FBT_EVENT_GPU_OVERHEAD:
		return ((const struct fbt_gpu_overhead *)record)->start_ns;
	default:
		return 0;
	}
}

/* Whether the process is traced only since the window began. */
static bool is_young(const struct excerpt *excerpt, uint32_t tgid)
{
	const struct fbt_target key = {.header = {FBT_EVENT_TARGET, 0, sizeof(key)}, .tgid = tgid};
	const struct fbt_target *target =
		(const struct fbt_target *)facts__find(excerpt->before, &key.header);

	return target && target->start_ns >= excerpt->start_ns;
}

/*
 * A thread's sums are of all its life: they mean something only if that was in the window. When it
 * has ended is not known but from the steps before.
 */
static bool is_within(const struct excerpt *excerpt, const struct fbt_thread_use *use)
{
	return excerpt->is_all ||
	       (excerpt->begun &&
		(is_young(excerpt, use->tgid) ||
		 use->traced_ns <= sub_saturating(excerpt->latest_ns, excerpt->start_ns)));
}

static int pass_event(struct excerpt *excerpt, const struct fbt_header *record)
{
	uint64_t time_ns = time_of(record);
	int err;

	if (record->type == FBT_EVENT_THREAD_USE) {
		if (!is_within(excerpt, (const struct fbt_thread_use *)record))
			return 0;
	} else if (time_ns ? time_ns < excerpt->start_ns : !excerpt->begun) {
		return 0;
	}
	err = begin_part(excerpt);
	if (err)
		return err;
	excerpt->records++;
	if (record->type == FBT_EVENT_STEP) {
		excerpt->steps++;
		excerpt->latest_ns =
			max_u64(excerpt->latest_ns, ((const struct fbt_step *)record)->end_ns);
	}
	return write_bytes(excerpt, record, record->size);
}

/* Of a process that is traced for longer than the window the sums are not those of the window. */
static int pass_table(const struct excerpt *excerpt, const struct fbt_table *row)
{
	return is_young(excerpt, row->tgid) ? write_bytes(excerpt, row, row->header.size) : 0;
}

/* Writes the record with a time at offset that is not before the window. */
static int write_clamped(const struct excerpt *excerpt, const struct fbt_header *record,
			 size_t offset)
{
	struct fbt_header *copy = malloc(record->size);
	uint64_t time_ns;
	int err;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, record->size);
	memcpy(&time_ns, (char *)copy + offset, sizeof(time_ns));
	time_ns = max_u64(time_ns, excerpt->start_ns);
	memcpy((char *)copy + offset, &time_ns, sizeof(time_ns));
	err = write_bytes(excerpt, copy, copy->size);
	free(copy);
	return err;
}

int excerpt_pass(struct excerpt *excerpt, const struct fbt_header *record)
{
	if (!facts_is_type(record->type))
		return pass_event(excerpt, record);
	if (is_total(record->type))
		return excerpt->begun ? write_total(excerpt, record)
				      : facts__put(excerpt->before, record);
	switch (record->type) {
	case FBT_EVENT_WINDOW:
		return 0;
	case FBT_EVENT_TABLE:
		return pass_table(excerpt, (const struct fbt_table *)record);
	case FBT_EVENT_TARGET: {
		int err = facts__put(excerpt->before, record);

		return err ? err
			   : write_clamped(excerpt, record, offsetof(struct fbt_target, start_ns));
	}
	case FBT_EVENT_TARGET_EXIT:
		return write_clamped(excerpt, record, offsetof(struct fbt_target_exit, end_ns));
	default:
		return write_bytes(excerpt, record, record->size);
	}
}

int excerpt_end(struct excerpt *excerpt)
{
	struct fbt_window_end end = {.header = {FBT_EVENT_WINDOW_END, 0, sizeof(end)},
				     .end_ns = excerpt->end_ns};
	int err = begin_part(excerpt);

	return err ? err : write_bytes(excerpt, &end, sizeof(end));
}

void excerpt_clear(struct excerpt *excerpt)
{
	facts__free(excerpt->before);
	free(excerpt->window);
	excerpt->before = NULL;
	excerpt->window = NULL;
}
