/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "profile/records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/vec.h"
#include "model/step.h"
#include "model/syscalls.h"
#include "profile/last_window.h"
#include "profile/profile.h"

/* Longer times than 292 years are no times. */
#define TIME_MAX_US (INT64_MAX / NS_PER_US)
#define PIDS_MAX    4096

struct kind_name {
	char *name;
	uint32_t kind; /* 0: not sent yet */
	uint32_t arg_count;
	char *args[FBT_ARG_COUNT]; /* those that any of its steps has: "arg.n_tokens" */
};

typedef VEC(struct kind_name) kind_vec;

struct records {
	const struct record_output *output;
	const struct last_window *window; /* the one that is wanted */
	uint64_t position;		  /* of the event that is read, as in last_window.h */
	uint64_t start_ns;
	uint64_t end_ns; /* latest time seen */
	bool has_end;
	struct fbt_window record; /* start_ns is 0: not known yet */
	kind_vec kinds;
	uint32_t kinds_sent;
	VEC(uint32_t) pids;
	struct fbt_step step; /* waits for its syscall_prof; tgid 0: there is none */
	uint64_t net_ns[FBT_CATEGORY_COUNT];
	uint64_t own_ns;
	bool parts_known;
	uint64_t steps;
};

/* The first two passes: which window is the last one, then its members and functions. */
struct survey {
	struct last_window *window;
	uint64_t position; /* as in records */
	struct json_object *shape;
	uint64_t total_us;
	kind_vec kinds;
};

static void clear_kinds(kind_vec *kinds)
{
	vec_for_each (kind, kinds) {
		free(kind->name);
		for (uint32_t i = 0; i < kind->arg_count; i++)
			free(kind->args[i]);
	}
	vec_free(kinds);
}

/* NULL: it is an interval. */
static const char *name_of_kind(struct json_object *shape)
{
	const char *source = profile_string(shape, "step_source");

	return source && !strcmp(source, "interval") ? NULL : profile_string(shape, "kind");
}

static struct kind_name *find_name(const kind_vec *kinds, const char *name)
{
	vec_for_each (kind, kinds)
		if (!strcmp(kind->name, name))
			return kind;
	return NULL;
}

static bool has_arg(const struct kind_name *kind, const char *key)
{
	for (uint32_t i = 0; i < kind->arg_count; i++)
		if (!strcmp(kind->args[i], key))
			return true;
	return false;
}

static int add_args(struct kind_name *kind, struct json_object *shape)
{
	json_object_object_foreach(shape, key, value)
	{
		(void)value;
		if (strncmp(key, "arg.", 4) != 0 || kind->arg_count == FBT_ARG_COUNT ||
		    has_arg(kind, key))
			continue;
		kind->args[kind->arg_count] = strdup(key);
		if (!kind->args[kind->arg_count])
			return -ENOMEM;
		kind->arg_count++;
	}
	return 0;
}

/* A step has only the arguments that were there. So those of its function are those of all. */
static int survey_step(struct survey *survey, struct json_object *shape)
{
	const char *name = name_of_kind(shape);
	struct kind_name made = {NULL}, *kind;

	if (!name)
		return 0;
	kind = find_name(&survey->kinds, name);
	if (kind)
		return add_args(kind, shape);
	if (survey->kinds.count == FBT_KIND_COUNT - 1)
		return 0;
	made.name = strdup(name);
	if (!made.name)
		return -ENOMEM;
	if (vec_push(&survey->kinds, made)) {
		free(made.name);
		return -ENOMEM;
	}
	return add_args(&survey->kinds.items[survey->kinds.count - 1], shape);
}

static bool is_step_or_window(const char *name)
{
	return !strcmp(name, "step_prof") || !strcmp(name, "window_prof");
}

static bool is_replayed(const char *name)
{
	return is_step_or_window(name) || !strcmp(name, "syscall_prof");
}

static uint64_t get_ns(struct json_object *stage_us, const char *key)
{
	uint64_t us = 0;

	return profile_uint(stage_us, key, &us) && us <= TIME_MAX_US ? us * NS_PER_US : 0;
}

static bool has_time(struct json_object *stage_us, const char *key)
{
	uint64_t us;

	return profile_uint(stage_us, key, &us);
}

static uint64_t get_count(struct json_object *shape, const char *key)
{
	uint64_t value = 0;

	profile_uint(shape, key, &value);
	return value;
}

static uint32_t get_u32(struct json_object *shape, const char *key)
{
	return (uint32_t)min_u64(get_count(shape, key), UINT32_MAX);
}

/* The first pass. */
static int find_window(void *ctx, const struct profile_event *event)
{
	struct survey *survey = ctx;

	if (!strcmp(event->name, "step_prof"))
		return last_window__add_step(survey->window, get_u32(event->shape, "pid"));
	return last_window__add_end(survey->window, profile_string(event->shape, "pids"));
}

/* The second pass. */
static int survey_event(void *ctx, const struct profile_event *event)
{
	struct survey *survey = ctx;

	survey->position++;
	if (last_window__ends_at(survey->window, survey->position)) {
		survey->shape = json_object_get(event->shape);
		profile_uint(event->stage_us, "total", &survey->total_us);
	}
	if (strcmp(event->name, "step_prof") != 0 ||
	    !last_window__has_step(survey->window, survey->position, get_u32(event->shape, "pid")))
		return 0;
	return survey_step(survey, event->shape);
}

static int send_window(struct records *records, struct json_object *shape)
{
	static const char *const details[] = {"steps", "escalated", "all", "probes"};
	static const char *const keys[] = {"tag", "tool_version", "kernel", "host"};
	const char *strings[4], *detail = shape ? profile_string(shape, "detail") : NULL;
	const char *arch = shape ? profile_string(shape, "arch") : NULL;
	struct fbt_window *window = &records->record;
	uint64_t us = 0;

	for (int i = 0; i < 4; i++)
		strings[i] = shape ? profile_string(shape, keys[i]) : NULL;
	window->arch = arch && !strcmp(arch, "arm64") ? FBT_ARCH_ARM64 : FBT_ARCH_X86_64;
	for (uint32_t i = 0; detail && i < 4; i++)
		if (!strcmp(detail, details[i]))
			window->detail = i;
	/* No call of it has a record. */
	if (window->detail != FBT_DETAIL_PROBES)
		window->detail = FBT_DETAIL_STEPS;
	window->start_ns = NS_PER_S;
	if (shape) {
		window->realtime_ns = get_ns(shape, "epoch_realtime_us");
		if (profile_uint(shape, "epoch_monotonic_us", &us) && us && us <= TIME_MAX_US / 2)
			window->start_ns = us * NS_PER_US;
		window->interval_ns = get_ns(shape, "interval_us");
	}
	records->start_ns = records->end_ns = window->start_ns;
	return record_send_strings(records->output, window, sizeof(*window), FBT_EVENT_WINDOW,
				   strings, 4);
}

static void send_lost(struct records *records, struct json_object *shape)
{
	static const char *const keys[FBT_LOST_COUNT] = {"lost_calls",	   "lost_steps",
							 "lost_threads",   "lost_begins",
							 "lost_processes", "lost_files"};
	struct fbt_lost lost = {.header.type = 0};
	struct fbt_unseen unseen = {.header.type = 0};

	for (int i = 0; i < FBT_LOST_COUNT; i++)
		lost.count[i] = get_count(shape, keys[i]);
	record_send(records->output, &lost, sizeof(lost), FBT_EVENT_LOST);
	unseen.calls = get_count(shape, "unseen_calls");
	if (unseen.calls)
		record_send(records->output, &unseen, sizeof(unseen), FBT_EVENT_UNSEEN);
}

static int touch_process(struct records *records, uint32_t tgid)
{
	struct fbt_target target = {.tgid = tgid, .start_ns = records->start_ns};
	const char *const strings[3] = {NULL};
	int err;

	vec_for_each (pid, &records->pids)
		if (*pid == tgid)
			return 0;
	if (records->pids.count == PIDS_MAX)
		return 0;
	err = vec_push(&records->pids, tgid);
	return err ? err
		   : record_send_strings(records->output, &target, sizeof(target), FBT_EVENT_TARGET,
					 strings, 3);
}

/*
 * Whether it is a Python function: those have no address, and the built-in table records how many
 * tokens they are given. Their classes are by that number.
 */
static bool is_python(const struct kind_name *kind, const struct fbt_kind *record)
{
	if (record->source != FBT_SOURCE_FUNCTION || record->address)
		return false;
	return has_arg(kind, "arg.n_tokens") || has_arg(kind, "arg.n_waited");
}

static int send_kind(const struct records *records, const struct kind_name *kind,
		     struct json_object *shape, uint32_t tgid)
{
	const char *source = profile_string(shape, "step_source");
	const char *address = profile_string(shape, "step_address");
	const char *strings[2 + FBT_ARG_COUNT] = {kind->name, ""};
	struct fbt_kind record = {
		.kind = kind->kind,
		.source = source && !strcmp(source, "usdt") ? FBT_SOURCE_USDT : FBT_SOURCE_FUNCTION,
		.address = address ? strtoull(address, NULL, 16) : 0,
		.exits = 1,
		.tgid = tgid,
		.arg_count = kind->arg_count,
	};

	if (is_python(kind, &record))
		record.header.flags |= FBT_KIND_PYTHON;
	for (uint32_t i = 0; i < kind->arg_count; i++)
		strings[2 + i] = kind->args[i] + strlen("arg.");
	return record_send_strings(records->output, &record, sizeof(record), FBT_EVENT_KIND,
				   strings, 2 + kind->arg_count);
}

/* The kind of a step, which is sent when it is new. *kind is NULL for intervals, or too many. */
static int find_kind(struct records *records, struct json_object *shape, uint32_t tgid,
		     const struct kind_name **kind)
{
	const char *name = name_of_kind(shape);
	struct kind_name *known = name ? find_name(&records->kinds, name) : NULL;

	*kind = known;
	if (!known || known->kind)
		return 0;
	known->kind = ++records->kinds_sent;
	return send_kind(records, known, shape, tgid);
}

static uint32_t find_end(struct json_object *shape)
{
	const char *name = profile_string(shape, "end");

	for (uint32_t i = FBT_END_RETURN; name && i <= FBT_END_RAISED; i++)
		if (!strcmp(name, step_end_name((enum fbt_step_end)i)))
			return i;
	return FBT_END_TRUNCATED;
}

static void fill_args(struct fbt_step *step, const struct kind_name *kind,
		      struct json_object *shape)
{
	int64_t value;

	for (uint32_t i = 0; kind && i < kind->arg_count; i++)
		if (profile_int(shape, kind->args[i], &value)) {
			step->args[i] = value;
			step->arg_mask |= 1u << i;
		}
}

static void fill_flags(struct fbt_step *step, const struct profile_event *event, bool with_calls)
{
	bool flag = false;

	if (!with_calls)
		step->header.flags |= FBT_STEP_CALLS_UNKNOWN;
	if (!has_time(event->stage_us, "gap"))
		step->header.flags |= FBT_STEP_NO_GAP;
	if (!has_time(event->stage_us, "other_threads_syscall"))
		step->header.flags |= FBT_STEP_OTHER_UNKNOWN;
	if (!has_time(event->stage_us, "run_delay"))
		step->header.flags |= FBT_STEP_SCHED_UNKNOWN;
	if (profile_bool(event->shape, "sampled", &flag) && flag)
		step->header.flags |= FBT_STEP_SAMPLED;
	/* Why it is not whole is not told. */
	if (profile_bool(event->shape, "complete", &flag) && !flag)
		step->header.flags |= FBT_STEP_MAYBE_PART;
	if (profile_bool(event->shape, "profiled", &flag) && flag)
		step->header.flags |= FBT_STEP_PROFILED;
}

/* The time of other threads, the thread that had no CPU, and signal handlers. */
static void fill_hidden(struct fbt_step *step, const struct profile_event *event)
{
	struct json_object *shape = event->shape, *stage_us = event->stage_us;

	if (has_time(stage_us, "starved")) {
		step->header.flags |= FBT_STEP_TEAM_KNOWN;
		step->starved_tid = get_u32(shape, "starved_tid");
		step->starved_ns = get_ns(stage_us, "starved");
	}
	if (has_time(stage_us, "other_threads_cpu")) {
		step->header.flags |= FBT_STEP_TEAM_TIMED;
		step->team_cpu_ns = get_ns(stage_us, "other_threads_cpu");
		step->team_delay_ns = get_ns(stage_us, "other_threads_cpu_wait");
		step->team_ns = step->team_cpu_ns + step->team_delay_ns;
		step->team_ns =
			add_saturating(step->team_ns, get_ns(stage_us, "other_threads_blocked"));
	}
	step->handlers = get_u32(shape, "signal_handlers");
	step->handlers_left = get_u32(shape, "signal_handlers_left");
	step->handlers_ns = get_ns(stage_us, "signal_handlers");
	if (step->handlers || step->handlers_left)
		step->header.flags |= FBT_STEP_HANDLERS_TIMED;
}

/* They are part of the time on a CPU. */
static void fill_faults(struct fbt_step *step, struct json_object *stage_us)
{
	static const char *const names[FBT_MAPPING_COUNT] = {
		[FBT_MAPPING_UNKNOWN] = "faults_unknown",
		[FBT_MAPPING_FILE] = "faults_file",
		[FBT_MAPPING_ANON] = "faults_anon",
		[FBT_MAPPING_STACK] = "faults_stack",
	};

	step->header.flags |= FBT_STEP_FAULTS_TIMED;
	step->faults.cpu_ns = get_ns(stage_us, "faults");
	step->cpu_ns = add_saturating(step->cpu_ns, step->faults.cpu_ns);
	for (int i = 0; i < FBT_MAPPING_COUNT; i++)
		step->faults.ns[i] = get_ns(stage_us, names[i]);
}

/* The times of the parts, and what the sums of calls are corrected by when they come. */
static void fill_parts(struct records *records, struct json_object *stage_us, bool with_calls)
{
	struct fbt_step *step = &records->step;
	const char *own = step_part_name(STEP_OWN, with_calls);

	step->run_delay_ns = get_ns(stage_us, with_calls ? "run_delay" : "cpu_wait");
	step->await_ns = get_ns(stage_us, "await");
	records->parts_known = has_time(stage_us, own);
	if (!records->parts_known)
		return;
	step->header.flags |= FBT_STEP_CPU_KNOWN;
	step->cpu_ns = get_ns(stage_us, own);
	if (!with_calls)
		return;
	step->fault_wait_ns = get_ns(stage_us, "disk_wait");
	if (has_time(stage_us, "faults"))
		fill_faults(step, stage_us);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		records->net_ns[i] =
			get_ns(stage_us, step_part_name((enum step_part)(STEP_CALLS + i), true));
}

static void flush_step(struct records *records)
{
	if (!records->step.tgid)
		return;
	record_send(records->output, &records->step, sizeof(records->step), FBT_EVENT_STEP);
	records->step.tgid = 0;
	records->steps++;
}

static int take_step(struct records *records, const struct profile_event *event)
{
	struct fbt_step *step = &records->step;
	const struct kind_name *kind;
	bool with_calls = true;
	uint32_t tgid = get_u32(event->shape, "pid");
	int err;

	if (!tgid)
		return 0;
	err = touch_process(records, tgid);
	if (!err)
		err = find_kind(records, event->shape, tgid, &kind);
	if (err)
		return err;
	profile_bool(event->shape, "calls_traced", &with_calls);
	*step = (struct fbt_step){.tgid = tgid, .tid = get_u32(event->shape, "tid")};
	memset(records->net_ns, 0, sizeof(records->net_ns));
	step->kind = kind ? kind->kind : 0;
	step->end = find_end(event->shape);
	step->threads = get_u32(event->shape, "threads");
	step->minor_faults = get_u32(event->shape, "minor_faults");
	step->major_faults = get_u32(event->shape, "major_faults");
	step->limits.memory_hits = get_u32(event->shape, "memory_limit_hits");
	step->limits.throttled_periods = get_u32(event->shape, "throttled_periods");
	step->limits.throttled_ns = get_ns(event->stage_us, "throttled_all_cpus");
	step->steal_us = (uint32_t)(get_ns(event->stage_us, "steal") / NS_PER_US);
	step->polls = get_u32(event->shape, "polls");
	step->lost_calls = get_count(event->shape, "lost_calls");
	fill_args(step, kind, event->shape);
	fill_flags(step, event, with_calls);
	step->thread_ns = get_ns(event->stage_us, "total");
	step->start_ns = add_saturating(records->start_ns, get_ns(event->shape, "start_us"));
	/* The total of an interval is the sum of its threads. */
	step->end_ns = add_saturating(step->start_ns, has_time(event->stage_us, "wall")
							      ? get_ns(event->stage_us, "wall")
							      : step->thread_ns);
	step->gap_ns = get_ns(event->stage_us, "gap");
	step->gap_syscall_ns = get_ns(event->stage_us, "gap_syscall");
	step->other_syscall_ns = get_ns(event->stage_us, "other_threads_syscall");
	fill_hidden(step, event);
	fill_parts(records, event->stage_us, with_calls);
	records->end_ns = max_u64(records->end_ns, step->end_ns);
	return 0;
}

/* The sums of the step before it. */
static void take_calls(struct records *records, const struct profile_event *event)
{
	struct fbt_step *step = &records->step;
	uint64_t left_ns = step->thread_ns;
	char key[32];

	/* A second line about the step replaces the first. */
	step->asleep_ns = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT && step->tgid; i++) {
		const char *name = category_name((enum fbt_category)i);
		struct fbt_sum *sum = &step->sums[i];

		snprintf(key, sizeof(key), "%s_calls", name);
		sum->calls = get_count(event->shape, key);
		snprintf(key, sizeof(key), "%s_errors", name);
		sum->errors = get_count(event->shape, key);
		snprintf(key, sizeof(key), "%s_max_us", name);
		sum->max_ns = get_ns(event->shape, key);
		sum->ns = take_u64(get_ns(event->stage_us, name), &left_ns);
		if (!records->parts_known)
			continue;
		/* Asleep in all of a call: then the time on a CPU is that of the step's own code.
		 */
		step->call_delay_ns[i] = sub_saturating(sum->ns, records->net_ns[i]);
		step->asleep_ns += sum->ns - step->call_delay_ns[i];
	}
}

static int take_event(void *ctx, const struct profile_event *event)
{
	struct records *records = ctx;

	if (!is_step_or_window(event->name)) {
		take_calls(records, event);
		return 0;
	}
	records->position++;
	flush_step(records);
	if (last_window__ends_at(records->window, records->position)) {
		send_lost(records, event->shape);
		records->has_end = true;
	}
	if (strcmp(event->name, "step_prof") != 0 ||
	    !last_window__has_step(records->window, records->position,
				   get_u32(event->shape, "pid")))
		return 0;
	return take_step(records, event);
}

static int read_file(const char *path, const struct profile_reader *reader,
		     struct profile_counts *counts)
{
	FILE *in = gzip_open_input(path);
	int err;

	if (!in) {
		err = -errno;
		log_err("%s: %s", path, strerror(-err));
		return err;
	}
	err = profile_read(in, path, reader, counts);
	fclose(in);
	return err;
}

static void tell(const char *path, const struct records *records,
		 const struct profile_counts *counts)
{
	uint64_t windows = last_window__count(records->window);

	log_info("a profile has no calls, stacks, threads and GPU records: causes are found by "
		 "sums of calls only; its own are in its escalation_prof lines");
	if (windows > 1)
		log_warn("%s: %" PRIu64 " windows: only the last one is shown", path, windows);
	if (counts->bad)
		log_warn("%s: %" PRIu64 " damaged lines are left out, the first is line %" PRIu64
			 ": %s",
			 path, counts->bad, counts->first_bad, counts->error);
	if (!records->has_end)
		log_warn("%s: no end of the window: what was lost is not known", path);
}

static int send_all(const char *path, struct records *records, const struct survey *survey)
{
	const struct profile_reader reader = {is_replayed, take_event, records};
	struct profile_counts counts = {0};
	int err = send_window(records, survey->shape);

	if (!err)
		err = read_file(path, &reader, &counts);
	if (err)
		return err;
	flush_step(records);
	if (records->has_end) {
		struct fbt_window_end end = {.end_ns = records->end_ns};
		uint64_t us = min_u64(survey->total_us, TIME_MAX_US / 2);

		end.end_ns = max_u64(end.end_ns, add_saturating(records->start_ns, us * NS_PER_US));
		record_send(records->output, &end, sizeof(end), FBT_EVENT_WINDOW_END);
	}
	tell(path, records, &counts);
	return 0;
}

/* What must be known before the first record is sent. */
static int survey_file(const char *path, struct survey *survey)
{
	const struct profile_reader first = {is_step_or_window, find_window, survey};
	const struct profile_reader second = {is_step_or_window, survey_event, survey};
	struct profile_counts counts = {0}, again = {0};
	int err = read_file(path, &first, &counts);

	if (!err && !counts.events) {
		log_err("%s: no steps of ferrum-bpftrace in %" PRIu64 " lines", path, counts.lines);
		return -EBADMSG;
	}
	return err ? err : read_file(path, &second, &again);
}

int profile_send_records(const char *path, const struct record_output *output)
{
	struct survey survey = {.window = last_window__new()};
	struct records records = {.output = output, .window = survey.window};
	int err = survey.window ? survey_file(path, &survey) : -ENOMEM;

	records.kinds = survey.kinds;
	if (!err)
		err = send_all(path, &records, &survey);
	json_object_put(survey.shape);
	clear_kinds(&records.kinds);
	vec_free(&records.pids);
	last_window__free(survey.window);
	return err;
}
