/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "capture.h"
#include "clock.h"
#include "disk_room.h"
#include "log.h"
#include "output.h"
#include "outputs.h"
#include "place.h"
#include "sink_alert.h"
#include "sink_chrome.h"
#include "sink_jsonl.h"
#include "sink_kineto.h"
#include "sink_otlp.h"
#include "sink_report.h"
#include "sink_room.h"
#include "sink_status.h"

/*
 * Looks for room on the disks: after so much time, so much of a recording, and what sink_room.h
 * counts. A look costs some 0.5 us, but a file server is asked.
 */
#define ROOM_TURN_NS	1000000000ull
#define ROOM_TURN_BYTES (4u << 20)

enum file_line { LINE_TRACE, LINE_PROFILE, LINE_RECORD, LINES };

struct outputs {
	struct pipeline *pipeline;
	struct sink *status; /* the pipeline's; NULL: not on a terminal */
	struct sink *trace_sink;
	struct sink *profile_sink;
	struct output *trace;
	struct output *profile;
	struct output *record;
	char *trace_path;
	char *profile_path;
	const char *report_lines[LINES + 1];
	char *report_text[LINES];
	int record_err;
	uint64_t keep_free; /* see disk_room.h */
	uint64_t room_ns;   /* when there was a look for room */
	size_t room_bytes;  /* of records since the last one */
};

/* The path to write: NULL for none. */
static int choose_path(char **path, const char *option, const char *dir, const char *prefix,
		       const char *tag, const char *suffix)
{
	*path = NULL;
	if (option ? !strcmp(option, "none") : !tag)
		return 0;
	if (option)
		*path = strdup(option);
	else if (asprintf(path, "%s/%s_%s.%s", dir, prefix, tag, suffix) < 0)
		*path = NULL;
	return *path ? 0 : -ENOMEM;
}

static int add_sink(struct outputs *outputs, struct sink *sink)
{
	return sink ? pipeline__add_sink(outputs->pipeline, sink) : -ENOMEM;
}

static int add_report_line(struct outputs *outputs, enum file_line index, const char *what,
			   const char *path)
{
	int used = 0;

	if (asprintf(&outputs->report_text[index], "%-8s %s", what, path) < 0)
		return -ENOMEM;
	while (outputs->report_lines[used])
		used++;
	outputs->report_lines[used] = outputs->report_text[index];
	return 0;
}

/*
 * All files before anything is written, so that one that cannot be opened leaves no others behind:
 * empty temporary files go away. The profile, which has no temporary name, comes last.
 */
static int open_files(struct outputs *outputs, const struct options *options, const char *tag)
{
	const char *dir = options->windows.dir;
	int err =
		choose_path(&outputs->trace_path, options->trace, dir, "ferrum_trace", tag, "json");

	if (!err)
		err = choose_path(&outputs->profile_path, options->profile, dir, "ferrum_profile",
				  tag, "jsonl");
	if (!err && outputs->trace_path)
		err = options->trace ? output__create(&outputs->trace, outputs->trace_path)
				     : output__create_new(&outputs->trace, outputs->trace_path);
	if (!err && options->record)
		err = output__create(&outputs->record, options->record);
	if (!err && outputs->profile_path)
		err = options->profile
			      ? output__append(&outputs->profile, outputs->profile_path)
			      : output__append_new(&outputs->profile, outputs->profile_path);
	return err;
}

static bool is_low(const struct outputs *outputs, struct output *output, struct disk_room *room)
{
	if (!output || !outputs->keep_free)
		return false;
	*room = disk_room_of(output__fd(output), outputs->keep_free);
	return disk_room_is_low(room);
}

static int check_room(const struct outputs *outputs, struct output *output, const char *path)
{
	struct disk_room room;

	if (!is_low(outputs, output, &room))
		return 0;
	disk_room_tell(&room, path, "");
	return -ENOSPC;
}

/* What could be written for a moment only is not begun. */
static int check_rooms(const struct outputs *outputs, const struct options *options)
{
	int err = check_room(outputs, outputs->trace, outputs->trace_path);

	if (!err)
		err = check_room(outputs, outputs->profile, outputs->profile_path);
	return err ? err : check_room(outputs, outputs->record, options->record);
}

/* A rank beyond the number of processes that the environment tells of is one of so many at least.
 */
static struct sink *new_kineto(const struct outputs *outputs, const struct options *options,
			       const struct metadata *metadata)
{
	struct kineto_options kineto = {
		.rank = options->gpu.rank_given ? options->gpu.rank : metadata->rank,
		.world_size = metadata->world_size,
		.path = outputs->trace_path,
	};

	if (kineto.world_size <= kineto.rank)
		kineto.world_size = kineto.rank + 1;
	return sink_kineto__new(output__file(outputs->trace), &kineto);
}

static int begin_trace(struct outputs *outputs, const struct options *options,
		       const struct metadata *metadata)
{
	int err;

	if (!outputs->trace)
		return 0;
	err = add_report_line(outputs, LINE_TRACE, "trace", outputs->trace_path);
	if (err)
		return err;
	outputs->trace_sink = options->trace_format == TRACE_KINETO
				      ? new_kineto(outputs, options, metadata)
				      : sink_chrome__new(output__file(outputs->trace));
	return add_sink(outputs, outputs->trace_sink);
}

static int begin_profile(struct outputs *outputs, const struct metadata *metadata)
{
	int err;

	if (!outputs->profile)
		return 0;
	err = add_report_line(outputs, LINE_PROFILE, "profile", outputs->profile_path);
	if (err)
		return err;
	outputs->profile_sink = sink_jsonl__new(output__fd(outputs->profile), metadata);
	return add_sink(outputs, outputs->profile_sink);
}

static int begin_record(struct outputs *outputs, const struct options *options)
{
	int err;

	if (!outputs->record)
		return 0;
	err = add_report_line(outputs, LINE_RECORD, "record", options->record);
	return err ? err : capture_write_header(output__file(outputs->record));
}

/* https://no-color.org: set and not empty. */
static bool wants_color(void)
{
	const char *no_color = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

static int add_report(struct outputs *outputs, const struct options *options)
{
	struct report_options report = {
		.format = options->report,
		.color = wants_color(),
		.files = outputs->report_lines,
	};

	if (options->report == REPORT_NONE)
		return 0;
	return add_sink(outputs, sink_report__new(stdout, &report));
}

static int add_status(struct outputs *outputs, const struct options *options)
{
	if (options->mode != MODE_TRACE || !isatty(STDERR_FILENO) || log_level() < LOG_INFO)
		return 0;
	outputs->status = sink_status__new();
	return add_sink(outputs, outputs->status);
}

static int add_otlp(struct outputs *outputs, const struct options *options)
{
	if (!options->otlp)
		return 0;
	return add_sink(outputs, sink_otlp__new(&options->collector, getenv("OTEL_SERVICE_NAME"),
						options->windows.flag));
}

/* Also in the report, which is how one hears of it who has not seen stderr. */
static void tell_end(struct outputs *outputs, enum file_line index, const char *what,
		     const struct disk_room *room)
{
	char *text;

	disk_room_tell(room, what, ", so it ends here and other outputs go on");
	if (asprintf(&text, "%s (ended early, its disk is nearly full)",
		     outputs->report_text[index]) < 0)
		return;
	for (int i = 0; i < LINES; i++) {
		if (outputs->report_lines[i] == outputs->report_text[index])
			outputs->report_lines[i] = text;
	}
	free(outputs->report_text[index]);
	outputs->report_text[index] = text;
}

/* Nobody else's disk is filled: what is there by now stays, and is whole. */
static void leave_room(void *ctx)
{
	struct outputs *outputs = ctx;
	struct pipeline *pipeline = outputs->pipeline;
	struct disk_room room;

	outputs->room_bytes = 0;
	if (is_low(outputs, outputs->trace, &room) &&
	    pipeline__end_sink(pipeline, outputs->trace_sink, -ENOSPC, true))
		tell_end(outputs, LINE_TRACE, "trace", &room);
	if (is_low(outputs, outputs->profile, &room) &&
	    pipeline__end_sink(pipeline, outputs->profile_sink, -ENOSPC, false))
		tell_end(outputs, LINE_PROFILE, "profile", &room);
	if (!outputs->record_err && is_low(outputs, outputs->record, &room)) {
		outputs->record_err = -ENOSPC;
		(void)fflush(output__file(outputs->record));
		tell_end(outputs, LINE_RECORD, "record", &room);
	}
}

int outputs__open(struct outputs **result, const struct options *options,
		  const struct metadata *metadata, const char *tag)
{
	struct outputs *outputs = calloc(1, sizeof(*outputs));
	int err = -ENOMEM;

	if (!outputs)
		return err;
	outputs->pipeline = pipeline__new(&options->judging);
	if (outputs->pipeline)
		err = open_files(outputs, options, tag);
	outputs->keep_free = options->windows.keep_free;
	if (!err)
		err = check_rooms(outputs, options);
	if (!err)
		err = begin_trace(outputs, options, metadata);
	if (!err)
		err = begin_profile(outputs, metadata);
	if (!err)
		err = begin_record(outputs, options);
	if (!err)
		err = add_sink(outputs, sink_alert__new(&options->judging.classify.thresholds));
	if (!err)
		err = add_report(outputs, options);
	if (!err)
		err = add_status(outputs, options);
	if (!err)
		err = add_otlp(outputs, options);
	if (!err)
		err = add_sink(outputs, sink_room__new(leave_room, outputs));
	if (err) {
		outputs__discard(outputs);
		outputs = NULL;
	}
	*result = outputs;
	return err;
}

void outputs__push(struct outputs *outputs, const void *data, size_t size)
{
	pipeline__push(outputs->pipeline, data, size);
	outputs->room_bytes += size;
	if (outputs->room_bytes >= ROOM_TURN_BYTES)
		leave_room(outputs);
}

static void emit(void *ctx, const void *data, size_t size)
{
	struct outputs *outputs = ctx;

	if (outputs->record && !outputs->record_err) {
		outputs->record_err = capture_write(output__file(outputs->record), data, size);
		if (outputs->record_err)
			log_err("record: %s: the recording ends here, other outputs go on%s",
				strerror(-outputs->record_err), place_advice(-outputs->record_err));
	}
	outputs__push(outputs, data, size);
}

struct record_output outputs__records(struct outputs *outputs)
{
	return (struct record_output){.emit = emit, .ctx = outputs};
}

const struct window *outputs__window(const struct outputs *outputs)
{
	return pipeline__window(outputs->pipeline);
}

void outputs__poll(struct outputs *outputs)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	pipeline__poll(outputs->pipeline);
	if (now_ns - outputs->room_ns < ROOM_TURN_NS)
		return;
	outputs->room_ns = now_ns;
	leave_room(outputs);
}

void outputs__show_status(struct outputs *outputs, uint64_t now_ns)
{
	if (outputs->status && !pipeline__has_failed(outputs->pipeline))
		sink_status__show(outputs->status, outputs__window(outputs), now_ns);
}

static int commit(struct output *output, int err)
{
	int failed = output ? output__commit(output) : 0;

	return err ? err : failed;
}

int outputs__finish(struct outputs *outputs)
{
	int err;

	log_status(NULL);
	err = pipeline__finish(outputs->pipeline);
	err = commit(outputs->trace, err);
	err = commit(outputs->profile, err);
	return commit(outputs->record, err ? err : outputs->record_err);
}

void outputs__wait(struct outputs *outputs)
{
	pipeline__wait(outputs->pipeline);
}

static void free_with(struct outputs *outputs, void (*close_output)(struct output *output))
{
	if (!outputs)
		return;
	pipeline__free(outputs->pipeline);
	close_output(outputs->trace);
	close_output(outputs->profile);
	close_output(outputs->record);
	free(outputs->trace_path);
	free(outputs->profile_path);
	for (size_t i = 0; i < LINES; i++)
		free(outputs->report_text[i]);
	free(outputs);
}

void outputs__free(struct outputs *outputs)
{
	free_with(outputs, output__free);
}

void outputs__discard(struct outputs *outputs)
{
	free_with(outputs, output__discard);
}
