/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A profile: its lines are steps, what was wrong with them, and the windows they are of. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "diff/read.h"
#include "profile/profile.h"

/* Longer times than 292 years are no times. */
#define TIME_MAX_US (INT64_MAX / NS_PER_US)

struct from_profile {
	struct side *side;
	uint64_t last_step; /* number of the step that was read last */
	uint64_t steps_since_end;
	/* Of the latest window, however many processes tell it. */
	char window_tag[64];
	uint64_t window_ns;
	uint64_t window_lost;
};

static bool is_wanted(const char *name)
{
	return !strcmp(name, "step_prof") || !strcmp(name, "escalation_prof") ||
	       !strcmp(name, "window_prof");
}

static bool get_ns(struct json_object *stage_us, const char *key, uint64_t *ns)
{
	uint64_t us;

	if (!profile_uint(stage_us, key, &us) || us > TIME_MAX_US)
		return false;
	*ns = us * NS_PER_US;
	return true;
}

/* The names of the arguments, "arg.NAME", in the order of the line, which is by name. */
static void find_arguments(struct json_object *shape, const char *names[FBT_ARG_COUNT])
{
	int count = 0;

	json_object_object_foreach(shape, key, value)
	{
		(void)value;
		if (count < FBT_ARG_COUNT && !strncmp(key, "arg.", 4))
			names[count++] = key + 4;
	}
}

static void find_size(struct side *side, const struct profile_event *event, int kind,
		      const char *const names[FBT_ARG_COUNT], struct side_step *step)
{
	int argument = side_kind_argument(side->kinds.items[kind], names);
	uint64_t busy_ns = 0;
	bool is_whole = false;
	int64_t value;

	side->has_gpu |= profile_bool(event->shape, "gpu_complete", &is_whole);
	if (is_whole)
		get_ns(event->stage_us, "gpu_busy", &busy_ns);
	step->size[SIZE_BY_WORK] = max_u64(step->size[SIZE_BY_WORK], busy_ns);
	if (argument < 0 || !profile_int(event->shape, names[argument] - 4, &value))
		return;
	step->has_argument = true;
	step->size[SIZE_BY_ARGUMENT] = value > 0 ? (uint64_t)value : 0;
}

/* Whether the line has the parts of the step. Also sets its work, from the best that there is. */
static bool find_parts(const struct profile_event *event, bool with_calls, struct side_step *step,
		       uint64_t parts[STEP_PARTS])
{
	bool known = false;

	for (int i = 0; i < STEP_PARTS; i++) {
		const char *name = step_part_name((enum step_part)i, with_calls);

		if (name && get_ns(event->stage_us, name, &parts[i]) && i == STEP_OWN)
			known = true;
	}
	step->size[SIZE_BY_WORK] = parts[STEP_OWN];
	if (!known && !get_ns(event->stage_us, "compute", &step->size[SIZE_BY_WORK]))
		step->size[SIZE_BY_WORK] = step->ns;
	return known;
}

static enum left_out why_left_out(struct json_object *shape)
{
	const char *end = profile_string(shape, "end");
	bool flag;

	if (profile_bool(shape, "profiled", &flag) && flag)
		return LEFT_PROFILED;
	if (!profile_bool(shape, "complete", &flag) || !flag)
		return LEFT_INCOMPLETE;
	return end && !strcmp(end, "return") ? LEFT_COUNT : LEFT_UNWOUND;
}

static int add_step(struct from_profile *self, const struct profile_event *event, int kind,
		    const char *const names[FBT_ARG_COUNT])
{
	struct side *side = self->side;
	struct side_step step = {.kind = (uint8_t)kind};
	uint64_t parts[STEP_PARTS] = {0};
	enum left_out why = why_left_out(event->shape);
	bool known, with_calls = true;

	if (why == LEFT_COUNT && !get_ns(event->stage_us, "total", &step.ns))
		why = LEFT_INCOMPLETE;
	if (why != LEFT_COUNT) {
		side__leave_out(side, (uint8_t)kind, why);
		return 0;
	}
	profile_bool(event->shape, "calls_traced", &with_calls);
	known = find_parts(event, with_calls, &step, parts);
	find_size(side, event, kind, names, &step);
	side->kinds.items[kind]->without_calls += !with_calls;
	return side__add(side, &step, known ? parts : NULL);
}

static int take_step(struct from_profile *self, const struct profile_event *event)
{
	const char *name = profile_string(event->shape, "kind");
	const char *source = profile_string(event->shape, "step_source");
	const char *names[FBT_ARG_COUNT] = {NULL};
	int kind;

	self->side->has_last = false;
	self->steps_since_end++;
	self->last_step = 0;
	profile_uint(event->shape, "step", &self->last_step);
	find_arguments(event->shape, names);
	kind = side__kind(self->side, name ? name : "?", names,
			  source && !strcmp(source, "interval"));
	if (kind == -ENOSPC) {
		self->side->kinds_left_out++;
		return 0;
	}
	return kind < 0 ? kind : add_step(self, event, kind, names);
}

static void take_escalation(struct from_profile *self, const struct profile_event *event)
{
	const char *name = profile_string(event->shape, "cause");
	uint64_t step = 0, us = 0, usual_us = 0;

	/* It comes right after its step. */
	if (!name || !profile_uint(event->shape, "step", &step) || step != self->last_step)
		return;
	profile_uint(event->shape, "cause_us", &us);
	profile_uint(event->shape, "cause_usual_us", &usual_us);
	us = min_u64(sub_saturating(us, usual_us), TIME_MAX_US);
	for (int i = 0; i < CAUSE_COUNT; i++)
		if (!strcmp(name, cause_name((enum cause_kind)i))) {
			side__add_cause(self->side, (enum cause_kind)i, us * NS_PER_US);
			return;
		}
}

static uint64_t count_lost(struct json_object *shape)
{
	uint64_t sum = 0, count;

	json_object_object_foreach(shape, key, value)
	{
		(void)value;
		if (!strncmp(key, "lost_", 5) && profile_uint(shape, key, &count))
			sum = add_saturating(sum, count);
	}
	return sum;
}

static const char *time_of_tag(const char *tag)
{
	const char *time = strrchr(tag, '_');

	return time ? time : "";
}

/*
 * With --flag each process has a window of its own in the profile, and all of one time tell the
 * same losses. Their tags differ only in the process: "pid4711_1764108000000".
 */
static void count_window(struct from_profile *self, struct json_object *shape, uint64_t ns)
{
	struct side *side = self->side;
	const char *tag = profile_string(shape, "tag");
	const char *time = tag ? time_of_tag(tag) : NULL;
	uint64_t lost = count_lost(shape), skipped = 0;
	/* Of the same process it is the same capture, replayed into the profile once more. */
	bool is_same = time && *time && !strncmp(tag, "pid", 3) &&
		       strcmp(tag, self->window_tag) != 0 &&
		       !strcmp(time, time_of_tag(self->window_tag));

	if (!is_same) {
		side->windows++;
		self->window_lost = self->window_ns = 0;
	}
	side->windows_ns = add_saturating(side->windows_ns, sub_saturating(ns, self->window_ns));
	side->lost = add_saturating(side->lost, sub_saturating(lost, self->window_lost));
	self->window_ns = max_u64(self->window_ns, ns);
	self->window_lost = max_u64(self->window_lost, lost);
	snprintf(self->window_tag, sizeof(self->window_tag), "%s", tag ? tag : "");
	/* Each could not read records of its own. */
	if (profile_uint(shape, "skipped_records", &skipped))
		side->lost = add_saturating(side->lost, skipped);
}

/* has_steps: since the window before; without any it is not known whether there were GPU records.
 */
static int set_facts(struct side *side, const struct profile_event *event, bool has_steps)
{
	static const struct {
		const char *key;
		enum side_fact fact;
		bool in_envelope;
	} rows[] = {
		{"host", FACT_HOST, false},	   {"arch", FACT_ARCH, false},
		{"kernel", FACT_KERNEL, false},	   {"tool_version", FACT_TOOL, false},
		{"detail", FACT_DETAIL, false},	   {"model", FACT_MODEL, true},
		{"commit_sha", FACT_COMMIT, true}, {"env_hash", FACT_ENV_HASH, true},
	};
	bool is_strict = false;
	char text[24];
	uint64_t count;
	int err = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && !err; i++)
		err = side__set_fact(
			side, rows[i].fact,
			profile_string(rows[i].in_envelope ? event->envelope : event->shape,
				       rows[i].key));
	profile_bool(event->shape, "gpu_strict", &is_strict);
	if (has_steps)
		err = err ? err : side__set_fact(side, FACT_GPU, side_gpu_fact(side, is_strict));
	side->has_gpu = false;
	if (err || !profile_uint(event->envelope, "concurrency", &count))
		return err;
	snprintf(text, sizeof(text), "%" PRIu64, count);
	return side__set_fact(side, FACT_CONCURRENCY, text);
}

static int take_window(struct from_profile *self, const struct profile_event *event)
{
	struct side *side = self->side;
	double percent = 0;
	uint64_t ns = 0;
	bool cut_off = false, has_steps = self->steps_since_end;

	self->steps_since_end = 0;
	get_ns(event->stage_us, "total", &ns);
	count_window(self, event->shape, ns);
	profile_bool(event->shape, "cut_off", &cut_off);
	side->cut_off += cut_off;
	if (profile_double(event->shape, "sampled_percent", &percent) && percent > 0 &&
	    (side->sampled_percent == 0 || percent < side->sampled_percent))
		side->sampled_percent = percent;
	return set_facts(side, event, has_steps);
}

static int take_event(void *ctx, const struct profile_event *event)
{
	if (!strcmp(event->name, "step_prof"))
		return take_step(ctx, event);
	if (!strcmp(event->name, "window_prof"))
		return take_window(ctx, event);
	take_escalation(ctx, event);
	return 0;
}

int side_read_profile(struct side *side, FILE *in)
{
	struct from_profile self = {.side = side};
	const struct profile_reader reader = {
		.wants = is_wanted, .on_event = take_event, .ctx = &self};
	struct profile_counts counts = {0};
	int err = profile_read(in, side->path, &reader, &counts);

	if (err)
		return err;
	if (!counts.events) {
		log_err("%s: no steps of ferrum-bpftrace in %" PRIu64 " lines", side->path,
			counts.lines);
		return -EBADMSG;
	}
	side->bad_lines = counts.bad;
	side->has_open_end = self.steps_since_end > 0;
	return 0;
}
