/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "top/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/vec.h"
#include "judge/frames.h"
#include "judge/hang.h"
#include "judge/look.h"
#include "judge/explained.h"
#include "judge/text.h"
#include "judge/verdict.h"
#include "model/gpu.h"

/* Steps come a little later than they ended, those with GPU records by seconds. */
#define SLOTS 16

#define LEFT_OVER (TOP_CLASSES - 1)

struct sample {
	uint64_t ns;
	uint32_t kind;
	uint32_t class;
};

typedef VEC(struct sample) sample_vec;

/* One second: the steps that ended in it. */
struct slot {
	uint64_t second; /* since the window began, from 1; 0: not in use */
	struct top_sums sums[TOP_CLASSES];
	sample_vec samples;
	uint64_t seen; /* steps that could be samples */
	bool changed;  /* since its percentile was taken */
};

struct past {
	uint64_t second;
	struct top_second figures;
	uint32_t cause_steps[CAUSE_COUNT];
	uint64_t cause_ns[CAUSE_COUNT];
};

struct class_entry {
	struct top_key key;
	uint64_t used; /* the second of its last step; 0: free */
};

struct top_model {
	struct slot slots[SLOTS];
	struct past past[TOP_HISTORY + SLOTS];
	struct class_entry classes[TOP_CLASSES];
	uint64_t start_ns; /* of the window; 0: no step yet */
	uint64_t last_step_ns;
	uint64_t random;
	VEC(uint64_t) sorted; /* for percentiles */
	struct top_slow *slow[TOP_SLOW];
	uint64_t slow_kept;    /* ever: their sequence */
	struct top_slow *held; /* the newest is first; NULL: none are held */
	size_t held_count;
	uint64_t slow_total;
	uint64_t slow_left_out;
	uint64_t worded_second;
	uint32_t worded;
	struct top_message messages[TOP_MESSAGES];
	uint64_t message_count;
};

struct top_model *top_model__new(void)
{
	struct top_model *model = calloc(1, sizeof(*model));

	if (model)
		model->random = 1;
	return model;
}

void top_model__free(struct top_model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		vec_free(&model->slots[i].samples);
	for (size_t i = 0; i < TOP_SLOW; i++)
		free(model->slow[i]);
	free(model->held);
	vec_free(&model->sorted);
	free(model);
}

/* From 1. What ended before the window, by a fault of the stream, is in the first. */
static uint64_t second_of(const struct top_model *model, uint64_t time_ns)
{
	return sub_saturating(time_ns, model->start_ns) / NS_PER_S + 1;
}

static void note_start(struct top_model *model, const struct window *window)
{
	if (!model->start_ns)
		model->start_ns = window->record.start_ns;
}

static struct past *past_at(struct top_model *model, uint64_t second)
{
	struct past *past = &model->past[second % (TOP_HISTORY + SLOTS)];

	if (past->second < second)
		*past = (struct past){.second = second};
	/* A step of long ago has no place any more. */
	return past->second == second ? past : NULL;
}

static struct slot *slot_at(struct top_model *model, uint64_t second)
{
	struct slot *slot = &model->slots[second % SLOTS];

	if (slot->second < second) {
		slot->samples.count = 0;
		slot->seen = 0;
		memset(slot->sums, 0, sizeof(slot->sums));
		slot->second = second;
	}
	return slot->second == second ? slot : NULL;
}

static bool is_same(const struct top_key *a, const struct top_key *b)
{
	return a->tgid == b->tgid && a->kind == b->kind && a->class.is_known == b->class.is_known &&
	       a->class.bits == b->class.bits && a->class.by_argument == b->class.by_argument;
}

static struct top_key key_of(const struct step *step)
{
	struct top_key key = {.tgid = step->record.tgid, .kind = step->record.kind};

	/* Intervals are not compared with each other. */
	if (key.kind && step->class.is_known)
		key.class = step->class;
	key.class.usual_ns = 0;
	return key;
}

/* The class of a step, which may take the place of one that no second needs any more. */
static uint32_t find_class(struct top_model *model, const struct top_key *key, uint64_t second)
{
	uint32_t unused = LEFT_OVER;

	for (uint32_t i = 0; i < LEFT_OVER; i++) {
		struct class_entry *entry = &model->classes[i];

		if (entry->used && is_same(&entry->key, key)) {
			if (entry->used < second)
				entry->used = second;
			return i;
		}
		if (unused == LEFT_OVER && (!entry->used || entry->used + SLOTS <= second))
			unused = i;
	}
	model->classes[unused].key =
		unused == LEFT_OVER ? (struct top_key){.kind = TOP_ALL_KINDS} : *key;
	model->classes[unused].used = second;
	return unused;
}

static void add_sums(struct top_sums *to, const struct top_sums *from)
{
	to->count += from->count;
	to->total_ns = add_saturating(to->total_ns, from->total_ns);
	to->max_ns = to->max_ns > from->max_ns ? to->max_ns : from->max_ns;
	for (int i = 0; i < STEP_PARTS; i++)
		to->parts_ns[i] = add_saturating(to->parts_ns[i], from->parts_ns[i]);
	to->gil_ns = add_saturating(to->gil_ns, from->gil_ns);
	to->gc_ns = add_saturating(to->gc_ns, from->gc_ns);
	to->calls = add_saturating(to->calls, from->calls);
	to->gpu_ns = add_saturating(to->gpu_ns, from->gpu_ns);
	to->gpu_busy_ns = add_saturating(to->gpu_busy_ns, from->gpu_busy_ns);
	to->gpu_launches = add_saturating(to->gpu_launches, from->gpu_launches);
	to->gpu_nodes = add_saturating(to->gpu_nodes, from->gpu_nodes);
	to->unknown += from->unknown;
	to->incomplete += from->incomplete;
	to->profiled += from->profiled;
}

static void sum_step(const struct step *step, struct top_sums *sums)
{
	struct step_parts parts;

	step_split(step, &parts);
	*sums = (struct top_sums){
		.count = 1,
		.total_ns = step_total_ns(step),
		.max_ns = step_total_ns(step),
		.gil_ns = step_gil_ns(step, &parts),
		.gc_ns = step_gc_ns(step, &parts),
		.calls = step_calls(step),
		.unknown = !step_calls_known(step),
		.incomplete = !step->complete,
		.profiled = step_is_profiled(step),
	};
	memcpy(sums->parts_ns, parts.ns, sizeof(sums->parts_ns));
	if (!step->gpu)
		return;
	sums->gpu_launches = step->gpu->all.launches;
	sums->gpu_nodes = step->gpu->all.graph_nodes;
	/* What is missing looks like idle time. */
	if (step->gpu->complete) {
		sums->gpu_ns = step_wall_ns(step);
		sums->gpu_busy_ns = step->gpu->all.busy_ns;
	}
}

/* xorshift64: a sample needs no secret. */
static uint64_t next_random(struct top_model *model)
{
	uint64_t value = model->random;

	value ^= value << 13;
	value ^= value >> 7;
	value ^= value << 17;
	model->random = value;
	return value;
}

/* Keeps each step of a second with the same probability (reservoir sampling). */
static int add_sample(struct top_model *model, struct slot *slot, const struct sample *sample)
{
	uint64_t place;

	slot->changed = true;
	slot->seen++;
	if (slot->samples.count < TOP_SAMPLES)
		return vec_push(&slot->samples, *sample);
	place = next_random(model) % slot->seen;
	if (place < TOP_SAMPLES)
		slot->samples.items[place] = *sample;
	return 0;
}

int top_model__add_step(struct top_model *model, const struct window *window,
			const struct step *step)
{
	struct top_key key = key_of(step);
	struct sample sample = {.ns = step_total_ns(step), .kind = key.kind};
	struct top_sums sums;
	struct slot *slot;
	struct past *past;
	uint64_t second;

	note_start(model, window);
	second = second_of(model, step->record.end_ns);
	if (model->last_step_ns < step->record.end_ns)
		model->last_step_ns = step->record.end_ns;
	slot = slot_at(model, second);
	past = past_at(model, second);
	if (past) {
		past->figures.steps++;
		if (past->figures.max_ns < sample.ns)
			past->figures.max_ns = sample.ns;
	}
	if (!slot)
		return 0;
	sample.class = find_class(model, &key, second);
	sum_step(step, &sums);
	add_sums(&slot->sums[sample.class], &sums);
	return add_sample(model, slot, &sample);
}

/* Makes the order of values such that the one of that rank is in its place (Hoare's quickselect).
 */
static uint64_t select_rank(uint64_t *values, size_t count, size_t rank)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		uint64_t middle = values[low + (high - low) / 2];
		size_t i = low, j = high;

		for (;;) {
			while (values[i] < middle)
				i++;
			while (values[j] > middle)
				j--;
			if (i >= j)
				break;
			uint64_t kept = values[i];

			values[i++] = values[j];
			values[j--] = kept;
		}
		if (rank <= j)
			high = j;
		else
			low = j + 1;
	}
	return values[rank];
}

/* Rank round(p * (count - 1)), as base/stats has it. Per mille; 0 without values. */
static uint64_t percentile(uint64_t *values, size_t count, unsigned int per_mille)
{
	if (!count)
		return 0;
	return select_rank(values, count, ((count - 1) * per_mille + 500) / 1000);
}

static void take_percentiles(struct top_model *model, struct top_row *row)
{
	uint64_t *values = model->sorted.items;
	size_t count = model->sorted.count;

	row->p50_ns = percentile(values, count, 500);
	row->p95_ns = percentile(values, count, 950);
	row->p99_ns = percentile(values, count, 990);
}

/* Share of the steps of a second that are among its samples. */
static double sampled_share(const struct slot *slot)
{
	return slot->seen ? (double)slot->samples.count / (double)slot->seen : 1;
}

/*
 * Collects the samples of a kind and a class; UINT32_MAX: of all. share: of the steps, at most; so
 * that the samples of several seconds stand for equally many steps each.
 */
static int collect(struct top_model *model, const struct slot *slot, uint32_t kind, uint32_t class,
		   double share)
{
	double each = sampled_share(slot) > 0 ? share / sampled_share(slot) : 1, taken = 0;

	vec_for_each (sample, &slot->samples) {
		taken += each;
		if (taken < 1)
			continue;
		taken -= 1;
		if ((kind != TOP_ALL_KINDS && sample->kind != kind) ||
		    (class != UINT32_MAX && sample->class != class))
			continue;
		if (vec_push(&model->sorted, sample->ns))
			return -ENOMEM;
	}
	return 0;
}

static bool is_within(const struct slot *slot, uint64_t first, uint64_t last)
{
	return slot->second && slot->second >= first && slot->second <= last;
}

/* The slots of the seconds from first to last. */
static int collect_all(struct top_model *model, uint64_t first, uint64_t last, uint32_t kind,
		       uint32_t class)
{
	double share = 1;

	model->sorted.count = 0;
	for (size_t i = 0; i < SLOTS; i++) {
		const struct slot *slot = &model->slots[i];

		if (is_within(slot, first, last) && sampled_share(slot) < share)
			share = sampled_share(slot);
	}
	for (size_t i = 0; i < SLOTS; i++) {
		const struct slot *slot = &model->slots[i];

		if (is_within(slot, first, last) && collect(model, slot, kind, class, share))
			return -ENOMEM;
	}
	return 0;
}

static int keep_percentiles(struct top_model *model)
{
	for (size_t i = 0; i < SLOTS; i++) {
		struct slot *slot = &model->slots[i];
		struct past *past = slot->changed ? past_at(model, slot->second) : NULL;

		if (!past)
			continue;
		model->sorted.count = 0;
		if (collect(model, slot, TOP_ALL_KINDS, UINT32_MAX, sampled_share(slot)))
			return -ENOMEM;
		past->figures.p99_ns = percentile(model->sorted.items, model->sorted.count, 990);
		slot->changed = false;
	}
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct top_row *a = left, *b = right;

	if (a->sums.total_ns != b->sums.total_ns)
		return a->sums.total_ns < b->sums.total_ns ? 1 : -1;
	return a->key.class.bits < b->key.class.bits ? -1 : 1;
}

static int compare_causes(const void *left, const void *right)
{
	const struct top_cause *a = left, *b = right;

	if (a->extra_ns != b->extra_ns)
		return a->extra_ns < b->extra_ns ? 1 : -1;
	/* What costs no extra time may be of slow steps all the same: it is told before the rest.
	 */
	if (a->steps != b->steps)
		return a->steps < b->steps ? 1 : -1;
	return (int)a->kind - (int)b->kind;
}

/* The rows of the last seconds, from first to last. */
static int fill_rows(struct top_model *model, uint64_t first, uint64_t last, uint32_t kind,
		     struct top_figures *figures)
{
	int err = 0;

	for (uint32_t class = 0; class < TOP_CLASSES && !err; class ++) {
		struct top_row row = {.key = model->classes[class].key};

		if (kind != TOP_ALL_KINDS && row.key.kind != kind)
			continue;
		for (size_t i = 0; i < SLOTS; i++) {
			const struct slot *slot = &model->slots[i];

			if (is_within(slot, first, last))
				add_sums(&row.sums, &slot->sums[class]);
		}
		if (!row.sums.count)
			continue;
		err = collect_all(model, first, last, kind, class);
		take_percentiles(model, &row);
		add_sums(&figures->all.sums, &row.sums);
		figures->rows[figures->row_count++] = row;
	}
	if (!err)
		err = collect_all(model, first, last, kind, UINT32_MAX);
	take_percentiles(model, &figures->all);
	qsort(figures->rows, figures->row_count, sizeof(*figures->rows), compare_rows);
	return err;
}

static void fill_history(struct top_model *model, uint64_t last, struct top_figures *figures)
{
	figures->history_seconds = last < TOP_HISTORY ? last : TOP_HISTORY;
	for (int i = 0; i < CAUSE_COUNT; i++)
		figures->causes[i].kind = (enum cause_kind)i;
	for (uint64_t back = 0; back < figures->history_seconds; back++) {
		const struct past *past = &model->past[(last - back) % (TOP_HISTORY + SLOTS)];

		if (past->second != last - back)
			continue;
		figures->history[TOP_HISTORY - 1 - back] = past->figures;
		for (int i = 0; i < CAUSE_COUNT; i++) {
			figures->causes[i].steps += past->cause_steps[i];
			figures->causes[i].extra_ns =
				add_saturating(figures->causes[i].extra_ns, past->cause_ns[i]);
		}
	}
	qsort(figures->causes, CAUSE_COUNT, sizeof(*figures->causes), compare_causes);
	while (figures->cause_count < CAUSE_COUNT && figures->causes[figures->cause_count].steps)
		figures->cause_count++;
}

int top_model__figures(struct top_model *model, uint64_t now_ns, uint32_t kind,
		       struct top_figures *figures)
{
	uint64_t last, first;
	int err;

	memset(figures, 0, sizeof(*figures));
	figures->now_ns = now_ns;
	figures->last_step_ns = model->last_step_ns;
	figures->slow_total = model->slow_total;
	figures->slow_left_out = model->slow_left_out;
	if (!model->start_ns)
		return 0;
	/* The second that has not ended yet does not count. */
	last = second_of(model, now_ns) - 1;
	first = last > TOP_RECENT ? last - TOP_RECENT + 1 : 1;
	figures->seconds = last - first + 1;
	if (!last)
		return 0;
	err = keep_percentiles(model);
	for (size_t i = 0; i < SLOTS; i++) {
		const struct slot *slot = &model->slots[i];

		if (slot->second >= first && slot->second <= last && slot->seen > TOP_SAMPLES)
			figures->sampled = true;
	}
	if (!err)
		err = fill_rows(model, first, last, kind, figures);
	fill_history(model, last, figures);
	return err;
}

/* The entry for a slow step; the oldest goes. NULL: it is only counted. */
static struct top_slow *new_slow(struct top_model *model, uint64_t end_ns)
{
	uint64_t second = second_of(model, end_ns);
	struct top_slow **place = &model->slow[model->slow_kept % TOP_SLOW];

	model->slow_total++;
	if (model->worded_second != second) {
		model->worded_second = second;
		model->worded = 0;
	}
	if (!*place)
		*place = malloc(sizeof(**place));
	if (!*place || model->worded >= TOP_SLOW_PER_S) {
		model->slow_left_out++;
		return NULL;
	}
	model->worded++;
	memset(*place, 0, sizeof(**place));
	(*place)->sequence = ++model->slow_kept;
	(*place)->end_ns = end_ns;
	(*place)->gpu_busy_ns = UINT64_MAX;
	return *place;
}

/* Who held the lock; if nobody is known to have kept the step waiting, what all others did. */
static void describe_others(struct top_slow *slow, const struct window *window,
			    const struct cause *cause)
{
	char others[LOOK_OTHERS_SIZE];
	struct fbt_stack holder;

	if (cause->holder_count) {
		look_stack(&cause->holders[0], &holder);
		frames_describe(&holder, window, slow->holder_stack, sizeof(slow->holder_stack));
		return;
	}
	if (cause->waker.tid || cause->woken.header.type || cause->peer.record.header.type)
		return;
	look_describe_others(cause->others, cause->other_count, window, others);
	snprintf(slow->others, sizeof(slow->others), "%s", others);
}

static void describe(struct top_slow *slow, const struct window *window,
		     const struct escalation *escalation)
{
	const struct cause *cause = &escalation->cause;
	struct line ended = {slow->waker_stack, sizeof(slow->waker_stack), 0};

	cause_describe(cause, window, slow->evidence, sizeof(slow->evidence));
	if (cause->stack.count)
		frames_describe(&cause->stack, window, slow->stack, sizeof(slow->stack));
	if (cause->waker_stack.count) {
		frames_describe(&cause->waker_stack, window, ended.text, ended.size);
		ended.length = strlen(ended.text);
		ended_after_add(&ended, cause_ended_after_ns(cause));
	}
	describe_others(slow, window, cause);
	snprintf(slow->reason, sizeof(slow->reason), "%s",
		 escalation_reason_text(escalation->result.reason));
}

static void count_cause(struct top_model *model, const struct step *step, const struct cause *cause)
{
	struct past *past = past_at(model, second_of(model, step->record.end_ns));

	if (!past || cause->kind >= CAUSE_COUNT)
		return;
	past->figures.slow++;
	past->cause_steps[cause->kind]++;
	past->cause_ns[cause->kind] =
		add_saturating(past->cause_ns[cause->kind], cause_cost_ns(cause));
}

void top_model__add_escalation(struct top_model *model, const struct window *window,
			       const struct step *step, const struct escalation *escalation)
{
	struct top_slow *slow;

	/* That a class is unsteady is told once; a step as long as usual is not slow. */
	if (escalation->repeated || escalation->as_usual)
		return;
	note_start(model, window);
	count_cause(model, step, &escalation->cause);
	slow = new_slow(model, step->record.end_ns);
	if (!slow)
		return;
	slow->realtime_ns = window__unix_ns(window, step->record.end_ns);
	slow->number = step->number;
	slow->key = key_of(step);
	slow->tid = step->record.tid;
	slow->total_ns = step_total_ns(step);
	if (escalation->judged && escalation->usual_ns)
		slow->times = (double)slow->total_ns / (double)escalation->usual_ns;
	slow->cause = escalation->cause.kind;
	slow->cause_ns = escalation->cause.time_ns;
	slow->extra_ns = cause_cost_ns(&escalation->cause);
	slow->names_culprit = cause_names_culprit(&escalation->cause);
	slow->cause_calls_known = escalation->cause.calls_known;
	slow->detail = window->record.detail;
	slow->suppressed = escalation->suppressed;
	slow->complete = step->complete;
	step_split(step, &slow->parts);
	slow->calls_known = step_calls_known(step);
	slow->gap_known = !(step->record.header.flags & FBT_STEP_NO_GAP);
	slow->gap_ns = step->record.gap_ns;
	slow->gil_known = step->stalls.gil_known;
	slow->gil_ns = step_gil_ns(step, &slow->parts);
	slow->gc_ns = step_gc_ns(step, &slow->parts);
	if (step->gpu)
		slow->gpu_busy_ns = step->gpu->all.busy_ns;
	slow->minor_faults = step->record.minor_faults;
	slow->major_faults = step->record.major_faults;
	shorten_name(slow->kind, sizeof(slow->kind), window__kind_name(window, step->record.kind),
		     15);
	describe(slow, window, escalation);
}

void top_model__add_hang(struct top_model *model, const struct window *window,
			 const struct fbt_hang *hang)
{
	char text[HANG_TEXT_SIZE], threads[HANG_THREADS_SIZE];
	struct top_slow *slow;

	note_start(model, window);
	slow = new_slow(model, hang->time_ns);
	if (!slow)
		return;
	slow->realtime_ns = window__unix_ns(window, hang->time_ns);
	slow->key = (struct top_key){.tgid = hang->tgid, .kind = hang->kind};
	slow->tid = hang->tid;
	slow->complete = true;
	shorten_name(slow->kind, sizeof(slow->kind), window__kind_name(window, hang->kind), 15);
	hang_describe(hang, window, text);
	snprintf(slow->evidence, sizeof(slow->evidence), "%.*s", TOP_TEXT - 1, text);
	hang_describe_threads(hang, window, threads);
	snprintf(slow->others, sizeof(slow->others), "%.*s", TOP_OTHERS - 1, threads);
	snprintf(slow->reason, sizeof(slow->reason), "hang");
}

void top_model__add_message(struct top_model *model, enum log_level level, const char *text)
{
	struct top_message *message = &model->messages[model->message_count++ % TOP_MESSAGES];

	message->level = level;
	snprintf(message->text, sizeof(message->text), "%s", text);
}

/* The newest is at 0; NULL after the oldest. */
static const struct top_slow *slow_at(const struct top_model *model, size_t index)
{
	if (index >= model->slow_kept || index >= TOP_SLOW)
		return NULL;
	return model->slow[(model->slow_kept - 1 - index) % TOP_SLOW];
}

int top_model__hold(struct top_model *model)
{
	size_t count = model->slow_kept < TOP_SLOW ? model->slow_kept : TOP_SLOW;

	top_model__release(model);
	model->held = calloc(count + 1, sizeof(*model->held));
	if (!model->held)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		model->held[i] = *slow_at(model, i);
	model->held_count = count;
	return 0;
}

void top_model__release(struct top_model *model)
{
	free(model->held);
	model->held = NULL;
}

const struct top_slow *top_model__slow(const struct top_model *model, size_t index)
{
	if (!model->held)
		return slow_at(model, index);
	return index < model->held_count ? &model->held[index] : NULL;
}

const struct top_message *top_model__message(const struct top_model *model, size_t index)
{
	if (index >= model->message_count || index >= TOP_MESSAGES)
		return NULL;
	return &model->messages[(model->message_count - 1 - index) % TOP_MESSAGES];
}
