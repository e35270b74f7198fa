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
#include "window_file.h"

/*
 * Looks for room on the disks: after so much time, so much of a recording, and what sink_room.h
 * counts. A look costs some 0.5 us, but a file server is asked.
 */
#define ROOM_TURN_NS	1000000000ull
#define ROOM_TURN_BYTES (4u << 20)

enum { TRACE, PROFILE, RECORD, FILES };

struct outputs {
	struct pipeline *pipeline;
	struct sink *status; /* the pipeline's; NULL: not on a terminal */
	struct window_file files[FILES];
	const char *end_reasons[FILES]; /* of what has ended early; NULL: not, or its sink knows */
	struct sink *sinks[FILES];	/* the pipeline's; NULL of records */
	const char *report_lines[FILES + 1];
	int record_err;
	int settle_err;
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

static int choose_paths(struct outputs *outputs, const struct options *options, const char *tag)
{
	const char *dir = options->windows.dir;
	int err = choose_path(&outputs->files[TRACE].path, options->trace, dir, "ferrum_trace", tag,
			      "json");

	if (!err)
		err = choose_path(&outputs->files[PROFILE].path, options->profile, dir,
				  "ferrum_profile", tag, "jsonl");
	if (err || !options->record)
		return err;
	outputs->files[RECORD].path = strdup(options->record);
	return outputs->files[RECORD].path ? 0 : -ENOMEM;
}

/*
 * All files before anything is written, so that one that cannot be opened leaves no others behind:
 * empty temporary files go away. The profile, which has no temporary name, comes last.
 */
static int open_files(struct outputs *outputs, const struct options *options, const char *tag)
{
	struct window_file *profile = &outputs->files[PROFILE];
	struct window_file *record = &outputs->files[RECORD];
	struct window_file *trace = &outputs->files[TRACE];
	int err = choose_paths(outputs, options, tag);

	if (!err && trace->path)
		err = options->trace ? output__create(&trace->output, trace->path)
				     : output__create_new(&trace->output, trace->path);
	if (!err && record->path)
		err = output__create(&record->output, record->path);
	if (!err && profile->path)
		err = options->profile ? output__append(&profile->output, profile->path)
				       : output__append_new(&profile->output, profile->path);
	return err;
}

/* What could be written for a moment only is not begun. */
static int check_rooms(const struct outputs *outputs)
{
	struct disk_room room;

	for (int i = 0; i < FILES; i++) {
		if (!window_file_is_low(&outputs->files[i], outputs->keep_free, &room))
			continue;
		disk_room_tell(&room, outputs->files[i].path, "");
		return -ENOSPC;
	}
	return 0;
}

/* A rank beyond the number of processes that the environment tells of is one of so many at least.
 */
static struct sink *new_kineto(const struct outputs *outputs, const struct options *options,
			       const struct metadata *metadata)
{
	struct kineto_options kineto = {
		.rank = options->gpu.rank_given ? options->gpu.rank : metadata->rank,
		.world_size = metadata->world_size,
		.path = outputs->files[TRACE].path,
	};

	if (kineto.world_size <= kineto.rank)
		kineto.world_size = kineto.rank + 1;
	return sink_kineto__new(output__file(outputs->files[TRACE].output), &kineto);
}

static int begin_trace(struct outputs *outputs, const struct options *options,
		       const struct metadata *metadata)
{
	struct output *trace = outputs->files[TRACE].output;

	if (!trace)
		return 0;
	outputs->sinks[TRACE] = options->trace_format == TRACE_KINETO
					? new_kineto(outputs, options, metadata)
					: sink_chrome__new(output__file(trace));
	return add_sink(outputs, outputs->sinks[TRACE]);
}

static int begin_profile(struct outputs *outputs, const struct metadata *metadata)
{
	struct output *profile = outputs->files[PROFILE].output;

	if (!profile)
		return 0;
	outputs->sinks[PROFILE] = sink_jsonl__new(output__fd(profile), metadata);
	return add_sink(outputs, outputs->sinks[PROFILE]);
}

static int begin_record(struct outputs *outputs)
{
	struct output *record = outputs->files[RECORD].output;

	return record ? capture_write_header(output__file(record)) : 0;
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

static void end_record(struct outputs *outputs, int err)
{
	outputs->record_err = err;
	outputs->end_reasons[RECORD] = strerror(-err);
	log_err("record: %s: the recording ends here, other outputs go on%s", strerror(-err),
		place_advice(-err));
}

/* Ends what has not ended before; true if it had not. */
static bool end_file(struct outputs *outputs, int index)
{
	if (index != RECORD)
		return pipeline__end_sink(outputs->pipeline, outputs->sinks[index], -ENOSPC,
					  index == TRACE);
	if (outputs->record_err)
		return false;
	outputs->record_err = -ENOSPC;
	(void)fflush(output__file(outputs->files[RECORD].output));
	return true;
}

/* Nobody else's disk is filled: what is there by now stays, and is whole. */
static void leave_room(void *ctx)
{
	struct outputs *outputs = ctx;
	struct disk_room room;

	outputs->room_bytes = 0;
	for (int i = 0; i < FILES; i++) {
		if (!window_file_is_low(&outputs->files[i], outputs->keep_free, &room) ||
		    !end_file(outputs, i))
			continue;
		disk_room_tell(&room, outputs->files[i].name,
			       ", so it ends here and other outputs go on");
		outputs->end_reasons[i] = "its disk is nearly full";
	}
}

/* A trace whose sink failed is not whole, but what has ended for want of room is. */
static int settle_file(struct outputs *outputs, int index)
{
	const struct sink *sink = outputs->sinks[index];
	const char *end_reason = outputs->end_reasons[index];
	bool is_whole = true;

	if (sink && !end_reason) {
		end_reason = pipeline__end_reason(outputs->pipeline, sink);
		is_whole = index != TRACE || !end_reason;
	}
	return window_file_settle(&outputs->files[index], end_reason, is_whole);
}

/* Before the report, which names the files as they are then. */
static void settle(void *ctx)
{
	struct outputs *outputs = ctx;
	struct output *record = outputs->files[RECORD].output;
	size_t count = 0;

	if (record && !outputs->record_err && fflush(output__file(record)))
		end_record(outputs, -errno);
	for (int i = 0; i < FILES; i++) {
		int err = settle_file(outputs, i);

		if (!outputs->settle_err)
			outputs->settle_err = err;
		if (outputs->files[i].line)
			outputs->report_lines[count++] = outputs->files[i].line;
	}
}

int outputs__open(struct outputs **result, const struct options *options,
		  const struct metadata *metadata, const char *tag)
{
	struct outputs *outputs = calloc(1, sizeof(*outputs));
	int err = -ENOMEM;

	if (!outputs)
		return err;
	outputs->files[TRACE].name = "trace";
	outputs->files[PROFILE].name = "profile";
	outputs->files[RECORD].name = "record";
	outputs->pipeline = pipeline__new(&options->judging);
	if (outputs->pipeline)
		err = open_files(outputs, options, tag);
	outputs->keep_free = options->windows.keep_free;
	if (!err)
		err = check_rooms(outputs);
	if (!err)
		err = begin_trace(outputs, options, metadata);
	if (!err)
		err = begin_profile(outputs, metadata);
	if (!err)
		err = begin_record(outputs);
	if (!err)
		err = add_sink(outputs, sink_room__new(leave_room, settle, outputs));
	if (!err)
		err = add_sink(outputs, sink_alert__new(&options->judging.classify.thresholds));
	if (!err)
		err = add_report(outputs, options);
	if (!err)
		err = add_status(outputs, options);
	if (!err)
		err = add_otlp(outputs, options);
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
	struct output *record = outputs->files[RECORD].output;
	int err;

	if (record && !outputs->record_err) {
		err = capture_write(output__file(record), data, size);
		if (err)
			end_record(outputs, err);
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

int outputs__finish(struct outputs *outputs)
{
	int err;

	log_status(NULL);
	err = pipeline__finish(outputs->pipeline);
	if (!err)
		err = outputs->record_err;
	return err ? err : outputs->settle_err;
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
	for (int i = 0; i < FILES; i++)
		window_file_clear(&outputs->files[i], close_output);
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
