/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "html/points.h"

#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "judge/text.h"

static int keep(struct points *points, const struct point *point)
{
	return vec_push(&points->kept, *point);
}

/* Of each two ordinary points of a kind that follow each other the longer one remains. */
static void thin(struct points *points)
{
	struct {
		size_t at; /* of the first of two */
		bool is_open;
	} pairs[FBT_KIND_COUNT] = {{0}};
	struct point *items = points->kept.items;
	size_t count = 0;

	for (size_t i = 0; i < points->kept.count; i++) {
		uint8_t kind = items[i].kind;

		if (!pairs[kind].is_open) {
			pairs[kind].at = count;
			items[count++] = items[i];
		} else if (items[i].total_ns > items[pairs[kind].at].total_ns) {
			items[pairs[kind].at] = items[i];
		}
		pairs[kind].is_open = !pairs[kind].is_open;
	}
	points->kept.count = count;
	points->stride *= 2;
}

/* The latest point is not escalated: it joins the group of its kind. */
static int group(struct points *points)
{
	uint8_t kind = points->latest.kind;

	if (!points->groups[kind].count ||
	    points->latest.total_ns > points->groups[kind].longest.total_ns)
		points->groups[kind].longest = points->latest;
	if (++points->groups[kind].count < points->stride)
		return 0;
	points->groups[kind].count = 0;
	if (points->kept.count >= POINTS_MAX)
		thin(points);
	return keep(points, &points->groups[kind].longest);
}

static int settle(struct points *points)
{
	int err;

	if (!points->has_latest)
		return 0;
	points->has_latest = false;
	if (points->latest.cause && points->wrong.count < POINTS_WRONG_MAX)
		err = vec_push(&points->wrong, points->latest);
	else
		err = group(points);
	if (err)
		free(points->latest.words);
	return err;
}

int points_add(struct points *points, const struct window *window, const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct step_parts parts;
	int err = settle(points);

	if (!points->stride)
		points->stride = 1;
	step_split(step, &parts);
	points->latest = (struct point){
		.number = step->number,
		.start_ns = sub_saturating(record->start_ns, window->record.start_ns),
		.total_ns = step_total_ns(step),
		.arg_mask = record->arg_mask,
		.tid = record->tid,
		.kind = record->kind < FBT_KIND_COUNT ? (uint8_t)record->kind : 0,
		.parts_known = parts.known,
		.calls_known = step_calls_known(step),
		.complete = step->complete,
	};
	memcpy(points->latest.part_ns, parts.ns, sizeof(parts.ns));
	memcpy(points->latest.args, record->args, sizeof(record->args));
	points->arg_masks[points->latest.kind] |= record->arg_mask;
	points->has_latest = true;
	points->seen++;
	return err;
}

int points_escalate(struct points *points, const struct window *window,
		    const struct escalation *escalation)
{
	char words[EVIDENCE_SIZE];

	if (!points->has_latest)
		return 0;
	points->latest.cause = (uint8_t)escalation->cause.kind + 1;
	points->latest.usual_ns = escalation->usual_ns;
	if (points->wordy >= POINTS_WORDS_MAX || points->wrong.count >= POINTS_WRONG_MAX)
		return 0;
	cause_describe(&escalation->cause, window, words, sizeof(words));
	points->latest.words = strdup(words);
	if (!points->latest.words)
		return -ENOMEM;
	points->wordy++;
	return 0;
}

int points_end(struct points *points)
{
	int err = settle(points);

	for (uint32_t kind = 0; kind < FBT_KIND_COUNT && !err; kind++) {
		if (points->groups[kind].count)
			err = keep(points, &points->groups[kind].longest);
		points->groups[kind].count = 0;
	}
	return err;
}

/* One number of each point, the escalated ones last. */
static void write_column(const struct points *points, struct json *json, const char *key,
			 uint64_t (*value)(const struct point *point, int index), int index)
{
	const point_vec *both[] = {&points->kept, &points->wrong};

	json_array_begin(json, key);
	for (int i = 0; i < 2; i++)
		for (size_t j = 0; j < both[i]->count; j++)
			json_uint(json, NULL, value(&both[i]->items[j], index));
	json_array_end(json);
}

static uint64_t number_of(const struct point *point, int index)
{
	return point->number;
}

static uint64_t start_of(const struct point *point, int index)
{
	return point->start_ns;
}

static uint64_t total_of(const struct point *point, int index)
{
	return point->total_ns;
}

static uint64_t part_of(const struct point *point, int index)
{
	return point->part_ns[index];
}

static uint64_t tid_of(const struct point *point, int index)
{
	return point->tid;
}

static uint64_t kind_of(const struct point *point, int index)
{
	return point->kind;
}

static uint64_t cause_of(const struct point *point, int index)
{
	return point->cause;
}

static uint64_t usual_of(const struct point *point, int index)
{
	return point->usual_ns;
}

/* Bit 0: its parts are known; 1: its calls; 2: nothing was lost. */
static uint64_t flags_of(const struct point *point, int index)
{
	return point->parts_known | (uint64_t)point->calls_known << 1 |
	       (uint64_t)point->complete << 2;
}

static bool has_part(const struct points *points, int part)
{
	const point_vec *both[] = {&points->kept, &points->wrong};

	for (int i = 0; i < 2; i++)
		for (size_t j = 0; j < both[i]->count; j++)
			if (both[i]->items[j].part_ns[part])
				return true;
	return false;
}

void points_choose_args(struct points *points, const struct window *window,
			const struct classifier *classifier)
{
	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++) {
		const char *class_by = classifier__class_by(classifier, window, kind);

		for (uint32_t i = 0; class_by && i < FBT_ARG_COUNT; i++) {
			const char *name = window->kinds[kind].arg_names[i];

			if (name && !strcmp(name, class_by))
				points->chosen[kind] = points->arg_masks[kind] & UINT32_C(1) << i;
		}
	}
}

uint32_t points_arg(const struct points *points, uint32_t kind)
{
	uint32_t chosen = points->chosen[kind];
	uint32_t mask = chosen ? chosen : points->arg_masks[kind];

	return mask ? (uint32_t)__builtin_ctz(mask) : 0;
}

static void write_args(const struct points *points, struct json *json)
{
	const point_vec *both[] = {&points->kept, &points->wrong};

	json_array_begin(json, "arg");
	for (int i = 0; i < 2; i++) {
		for (size_t j = 0; j < both[i]->count; j++) {
			const struct point *point = &both[i]->items[j];

			uint32_t arg = points_arg(points, point->kind);

			if (point->arg_mask >> arg & 1)
				json_int(json, NULL, point->args[arg]);
			else
				json_null(json, NULL);
		}
	}
	json_array_end(json);
}

static void write_words(const struct points *points, struct json *json)
{
	json_array_begin(json, "words");
	for (size_t i = 0; i < points->wrong.count; i++) {
		const struct point *point = &points->wrong.items[i];

		if (!point->words)
			continue;
		json_array_begin(json, NULL);
		json_uint(json, NULL, point->number);
		json_string(json, NULL, point->words);
		json_array_end(json);
	}
	json_array_end(json);
}

void points_write(const struct points *points, struct json *json, const char *key)
{
	char name[24];

	json_object_begin(json, key);
	json_uint(json, "seen", points->seen);
	json_uint(json, "stride", points->stride);
	json_uint(json, "escalated_kept", points->wrong.count);
	json_object_begin(json, "columns");
	write_column(points, json, "number", number_of, 0);
	write_column(points, json, "start", start_of, 0);
	write_column(points, json, "total", total_of, 0);
	write_column(points, json, "tid", tid_of, 0);
	write_column(points, json, "kind", kind_of, 0);
	write_column(points, json, "cause", cause_of, 0);
	write_column(points, json, "usual", usual_of, 0);
	write_column(points, json, "flags", flags_of, 0);
	write_args(points, json);
	/* A part that no step has is left out. */
	for (int i = 0; i < STEP_PARTS; i++) {
		if (!has_part(points, i))
			continue;
		snprintf(name, sizeof(name), "part%d", i);
		write_column(points, json, name, part_of, i);
	}
	json_object_end(json);
	write_words(points, json);
	json_object_end(json);
}

void points_clear(struct points *points)
{
	for (size_t i = 0; i < points->wrong.count; i++)
		free(points->wrong.items[i].words);
	vec_free(&points->wrong);
	vec_free(&points->kept);
	if (points->has_latest)
		free(points->latest.words);
	points->has_latest = false;
}
