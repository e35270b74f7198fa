/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "html/html.h"
#include "output/capture.h"
#include "output/trace_slices.h"
#include "output/file.h"
#include "output/folded.h"
#include "output/jsonl.h"
#include "output/kineto.h"
#include "output/memory_copy.h"
#include "output/perfetto.h"
#include "output/terminal.h"
#include "report/report.h"

/*
 * The disks are checked after this time, after this many bytes of records, and by the pipeline
 * after PIPELINE_WATCH_ITEMS. A check costs about 0.5 us, but on a network file system it asks the
 * server.
 */
#define ROOM_TURN_NS	NS_PER_S
#define ROOM_TURN_BYTES (4u << 20)

/*
 * In the order of the lines in the report. For a new product open_files names and opens the file,
 * and new_file_sink makes its sink: a product that is not named there is a trace. collect_folders
 * in trace/confine.c needs its path, so that the confined tool can put the file in place; for
 * -o BASE name_files in options.c and the size of named in options.h; check_outputs, so that no
 * file is named twice.
 */
enum { TRACE, PROFILE, RECORD, HTML, FOLDED, KINETO, EXECUTION, PRODUCTS };

/* After the forms of these, that of a trace in Perfetto's format. */
#define PERFETTO_FORM PRODUCTS

/* A file and the sink that writes it. */
struct product {
	struct window_file file;
	struct sink *sink;	/* owned by the pipeline; NULL: no sink writes it */
	const char *end_reason; /* why we ended the file early; NULL: we did not */
};

struct outputs {
	struct pipeline *pipeline;
	struct product products[PRODUCTS];
	struct sink *status; /* owned by the pipeline; NULL: not on a terminal */
	struct sink *alert;  /* owned by the pipeline; NULL: a live view shows escalations */
	const char *report_lines[PRODUCTS + 1];
	/* Of PyTorch's profiler: */
	const struct options *options; /* borrowed, to name its files */
	char *tag;
	FILE *kineto;	  /* what its Kineto has exported; NULL: nothing */
	int execution_fd; /* its execution trace; -1: none */
	int settle_err;
	uint64_t keep_free; /* see disk_room_of */
	uint64_t room_ns;   /* when the disks were last checked */
	size_t room_bytes;  /* bytes of records since then */
};

/*
 * Sets the path of a file: that of its option; else DIR/STEM_TAG.SUFFIX, or with -o
 * BASE_TAG.SUFFIX; NULL for none. This is the only place that makes names with a tag.
 */
static int name_file(struct window_file *file, const struct options *options, const char *option,
		     const char *tag)
{
	static const struct {
		const char *name, *stem, *suffix, *base_suffix;
	} forms[] = {
		{"trace", "ferrum_trace", "json", "trace.json"},
		{"profile", "ferrum_profile", "jsonl", "jsonl"},
		{"record", "ferrum_record", "fbt", "fbt"},
		{"html", "ferrum_report", "html", "html"},
		{"folded", "ferrum_stacks", "folded", "folded"},
		{"kineto", "kineto", "json", "kineto.json"},
		{"execution", "pytorch_et", "json", "et.json"},
		[PERFETTO_FORM] = {"trace", "ferrum_trace", "pftrace", "pftrace"},
	};
	size_t i = 0;

	if (option ? !strcmp(option, "none") : !tag)
		return 0;
	while (strcmp(forms[i].name, file->name) != 0)
		i++;
	if (!strcmp(file->name, "trace") && options->trace_format == TRACE_PERFETTO)
		i = PERFETTO_FORM;
	if (option)
		file->path = strdup(option);
	else if ((options->output ? asprintf(&file->path, "%s_%s.%s", options->output, tag,
					     forms[i].base_suffix)
				  : asprintf(&file->path, "%s/%s_%s.%s", options->windows.dir,
					     forms[i].stem, tag, forms[i].suffix)) < 0)
		file->path = NULL;
	return file->path ? 0 : -ENOMEM;
}

/*
 * Only the broker may open a file that exists already. Once it is gone the other files of a window
 * are worth having, so the profile is a file of its own then.
 */
static int open_profile(struct window_file *profile, const struct options *options, const char *tag)
{
	int err;

	if (!options->profile)
		return output__append_new(&profile->output, profile->path);
	err = output__append(&profile->output, profile->path);
	if (err != -EPIPE && err != -ETIMEDOUT)
		return err;
	free(profile->path);
	profile->path = NULL;
	err = name_file(profile, options, NULL, tag);
	if (err)
		return err;
	log_warn("%s: the broker process that opens it is gone: the profile of this window is %s",
		 options->profile, profile->path);
	return output__append_new(&profile->output, profile->path);
}

/*
 * Opens all files before anything is written. If one cannot be opened, the empty temporary files of
 * the others are removed. The profile has no temporary name, so it is opened last.
 */
static int open_files(struct outputs *outputs, const struct options *options, const char *tag)
{
	struct window_file *profile = &outputs->products[PROFILE].file;
	struct window_file *record = &outputs->products[RECORD].file;
	struct window_file *html = &outputs->products[HTML].file;
	struct window_file *trace = &outputs->products[TRACE].file;
	struct window_file *kineto = &outputs->products[KINETO].file;
	struct window_file *folded = &outputs->products[FOLDED].file;
	int err;

	trace->name = "trace";
	profile->name = "profile";
	record->name = "record";
	html->name = "html";
	folded->name = "folded";
	kineto->name = "kineto";
	outputs->products[EXECUTION].file.name = "execution";
	err = name_file(trace, options, options->trace, tag);
	if (!err)
		err = name_file(profile, options, options->profile, tag);
	if (!err)
		err = name_file(record, options, options->record, NULL);
	if (!err)
		err = name_file(html, options, options->html, options->output ? tag : NULL);
	if (!err)
		err = name_file(folded, options, options->folded,
				options->output && options_have_stacks(options) ? tag : NULL);
	if (!err && options->torch.is_on)
		err = name_file(kineto, options, NULL, tag);
	if (!err && trace->path)
		err = options->trace ? output__create(&trace->output, trace->path)
				     : output__create_new(&trace->output, trace->path);
	if (!err && kineto->path)
		err = output__create_new(&kineto->output, kineto->path);
	if (!err && record->path)
		err = output__create(&record->output, record->path);
	if (!err && html->path)
		err = options->html ? output__create(&html->output, html->path)
				    : output__create_new(&html->output, html->path);
	if (!err && folded->path)
		err = options->folded ? output__create(&folded->output, folded->path)
				      : output__create_new(&folded->output, folded->path);
	return err || !profile->path ? err : open_profile(profile, options, tag);
}

/* Refuses to begin a file that would have to end soon because its disk is nearly full. */
static int check_rooms(const struct outputs *outputs)
{
	struct disk_room room;

	for (int i = 0; i < PRODUCTS; i++) {
		const struct window_file *file = &outputs->products[i].file;

		if (!window_file_is_low(file, outputs->keep_free, &room))
			continue;
		disk_room_tell(&room, file->path, "");
		return -ENOSPC;
	}
	return 0;
}

static int add_sink(struct outputs *outputs, struct sink *sink)
{
	return sink ? pipeline__add_sink(outputs->pipeline, sink) : -ENOMEM;
}

/* Rank N implies a world of at least N + 1 processes, whatever the environment says. */
static struct sink *new_kineto(const struct window_file *file, const struct options *options,
			       const struct metadata *metadata)
{
	struct kineto_options kineto = {
		.rank = options->gpu.rank_given ? options->gpu.rank : metadata->rank,
		.world_size = metadata->world_size,
		.path = file->path,
	};

	if (kineto.world_size <= kineto.rank)
		kineto.world_size = kineto.rank + 1;
	return sink_kineto__new(output__file(file->output), &kineto);
}

static struct sink *new_file_sink(int index, const struct window_file *file,
				  const struct options *options, const struct metadata *metadata)
{
	switch (index) {
	case PROFILE:
		return sink_jsonl__new(output__fd(file->output), output__file(file->output),
				       metadata);
	case RECORD:
		return sink_capture__new(output__file(file->output));
	case HTML:
		return sink_html__new(output__file(file->output));
	case FOLDED:
		return sink_folded__new(output__file(file->output));
	case KINETO:
		return new_kineto(file, options, metadata);
	default:
		if (options->trace_format == TRACE_KINETO)
			return new_kineto(file, options, metadata);
		if (options->trace_format == TRACE_PERFETTO)
			return sink_perfetto__new(output__file(file->output));
		return sink_ferrum_trace__new(output__file(file->output));
	}
}

static int add_files(struct outputs *outputs, const struct options *options,
		     const struct metadata *metadata)
{
	int err = 0;

	for (int i = 0; i < PRODUCTS && !err; i++) {
		struct product *product = &outputs->products[i];

		if (!product->file.output)
			continue;
		product->sink = new_file_sink(i, &product->file, options, metadata);
		err = add_sink(outputs, product->sink);
	}
	return err;
}

/* https://no-color.org: no color if NO_COLOR is set and not empty. */
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
		.verbose = log_level() >= LOG_DEBUG,
		.files = outputs->report_lines,
	};

	if (options->report == REPORT_NONE)
		return 0;
	return add_sink(outputs, sink_report__new(stdout, &report));
}

static int add_alert(struct outputs *outputs, const struct options *options)
{
	outputs->alert = sink_alert__new(&options->judging.classify.thresholds);
	return add_sink(outputs, outputs->alert);
}

static int add_status(struct outputs *outputs, const struct options *options)
{
	if (options->mode != MODE_TRACE || options->top || !isatty(STDERR_FILENO) ||
	    log_level() < LOG_INFO)
		return 0;
	outputs->status = sink_status__new();
	return add_sink(outputs, outputs->status);
}

static int add_otlp(struct outputs *outputs, const struct options *options,
		    struct otlp_health *health)
{
	if (!options->otlp)
		return 0;
	return add_sink(outputs,
			sink_otlp__new(&options->collector, health, getenv("OTEL_SERVICE_NAME"),
				       options->windows.flag));
}

/* Ends files whose disk is nearly full. What they contain by then is kept, and is valid. */
static void leave_room(void *ctx)
{
	struct outputs *outputs = ctx;
	struct disk_room room;

	outputs->room_bytes = 0;
	for (int i = 0; i < PRODUCTS; i++) {
		struct product *product = &outputs->products[i];

		if (!product->sink ||
		    !window_file_is_low(&product->file, outputs->keep_free, &room) ||
		    !pipeline__end_sink(outputs->pipeline, product->sink, -ENOSPC))
			continue;
		disk_room_tell(&room, product->file.name, ": it ends here, other outputs continue");
		product->end_reason = "its disk is nearly full";
	}
}

/*
 * A document whose sink failed is incomplete; one that leave_room ended is complete. What has no
 * sink is a copy, and one that ended early is a part of a document.
 */
static int settle_product(const struct outputs *outputs, struct product *product)
{
	const char *failure =
		product->sink ? pipeline__end_reason(outputs->pipeline, product->sink) : NULL;
	bool is_whole = product->sink
				? product->end_reason || !failure || !product->sink->is_document
				: !product->end_reason;

	return window_file_settle(&product->file,
				  product->end_reason ? product->end_reason : failure, is_whole);
}

/* Whether the disk of an open file can take more bytes; else says so. */
static bool has_room(const struct outputs *outputs, const struct window_file *file, uint64_t bytes)
{
	struct disk_room room = disk_room_of(output__fd(file->output), outputs->keep_free);

	if (room.free_bytes == UINT64_MAX ||
	    room.free_bytes >= add_saturating(room.keep_bytes, bytes))
		return true;
	disk_room_tell(&room, file->path, ": no trace of PyTorch's profiler is written");
	return false;
}

/* Without an export of PyTorch's there is no such file. */
static void drop_kineto(struct outputs *outputs)
{
	struct window_file *file = &outputs->products[KINETO].file;

	output__discard(file->output);
	file->output = NULL;
}

static int write_execution(struct outputs *outputs)
{
	struct window_file *file = &outputs->products[EXECUTION].file;
	uint64_t bytes = memory_file_bytes(outputs->execution_fd);
	int err = name_file(file, outputs->options, NULL, outputs->tag);

	if (!err)
		err = output__create_new(&file->output, file->path);
	if (err || !has_room(outputs, file, bytes)) {
		output__discard(file->output);
		file->output = NULL;
		return err ? err : -ENOSPC;
	}
	err = memory_file_copy(outputs->execution_fd, bytes, output__file(file->output));
	if (err)
		outputs->products[EXECUTION].end_reason = "the engine's file could not be copied";
	return err;
}

void outputs__take_torch(struct outputs *outputs, int execution_fd, int kineto_fd)
{
	struct product *kineto = &outputs->products[KINETO];
	uint64_t bytes = memory_file_bytes(kineto_fd);

	outputs->execution_fd = execution_fd;
	outputs->kineto = fdopen(kineto_fd, "re");
	if (!outputs->kineto) {
		close(kineto_fd);
		return;
	}
	rewind(outputs->kineto);
	if (kineto->sink && has_room(outputs, &kineto->file, bytes))
		sink_kineto_add(kineto->sink, outputs->kineto, bytes);
}

/* Puts the files in place and words their lines of the report. */
static void settle(struct outputs *outputs)
{
	size_t count = 0;

	for (int i = 0; i < PRODUCTS; i++) {
		struct product *product = &outputs->products[i];
		int err = settle_product(outputs, product);

		if (!outputs->settle_err)
			outputs->settle_err = err;
		if (product->file.line)
			outputs->report_lines[count++] = product->file.line;
	}
}

int outputs__open(struct outputs **result, const struct options *options,
		  const struct metadata *metadata, const char *tag, struct otlp_health *health,
		  struct metrics *metrics)
{
	struct outputs *outputs = calloc(1, sizeof(*outputs));
	int err = -ENOMEM;

	*result = NULL;
	if (!outputs)
		return err;
	outputs->keep_free = options->windows.keep_free;
	outputs->execution_fd = -1;
	outputs->options = options;
	outputs->tag = tag ? strdup(tag) : NULL;
	outputs->pipeline = pipeline__new(&options->judging);
	if (outputs->pipeline)
		err = open_files(outputs, options, tag);
	if (!err)
		err = check_rooms(outputs);
	if (!err)
		err = add_files(outputs, options, metadata);
	/* A live view shows escalations itself. */
	if (!err && !options->top)
		err = add_alert(outputs, options);
	if (!err)
		err = add_report(outputs, options);
	if (!err)
		err = add_status(outputs, options);
	if (!err)
		err = add_otlp(outputs, options, health);
	if (!err && metrics)
		err = add_sink(outputs,
			       metrics__sink(metrics, pipeline__window(outputs->pipeline)));
	if (err) {
		outputs__discard(outputs);
		return err;
	}
	pipeline__watch(outputs->pipeline, (struct pipeline_watch){leave_room, outputs});
	*result = outputs;
	return 0;
}

void outputs__push(struct outputs *outputs, const void *data, size_t size)
{
	pipeline__push(outputs->pipeline, data, size);
	outputs->room_bytes += size;
	if (outputs->room_bytes >= ROOM_TURN_BYTES)
		leave_room(outputs);
}

/* A sink that passes escalations on. */
struct sink_watch {
	struct sink sink;
	void (*on_escalation)(void *ctx, const struct step *step,
			      const struct escalation *escalation);
	void *ctx;
};

static int watch_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	const struct sink_watch *self = (const struct sink_watch *)sink;

	self->on_escalation(self->ctx, step, escalation);
	return 0;
}

static void free_watch(struct sink *sink)
{
	free(sink);
}

int outputs__watch(struct outputs *outputs,
		   void (*on_escalation)(void *ctx, const struct step *step,
					 const struct escalation *escalation),
		   void *ctx)
{
	struct sink_watch *self = calloc(1, sizeof(*self));

	if (!self) {
		log_err("no memory to explain escalations");
		return -ENOMEM;
	}
	self->sink = (struct sink){
		.name = "explain", .write_escalation = watch_escalation, .free = free_watch};
	self->on_escalation = on_escalation;
	self->ctx = ctx;
	return pipeline__add_sink(outputs->pipeline, &self->sink);
}

int outputs__add_sink(struct outputs *outputs, struct sink *sink)
{
	return add_sink(outputs, sink);
}

static void emit(void *ctx, const void *data, size_t size)
{
	outputs__push(ctx, data, size);
}

struct record_output outputs__records(struct outputs *outputs)
{
	return (struct record_output){.emit = emit, .ctx = outputs};
}

const struct window *outputs__window(const struct outputs *outputs)
{
	return pipeline__window(outputs->pipeline);
}

void outputs__name_process(struct outputs *outputs)
{
	if (outputs->alert)
		sink_alert__name_process(outputs->alert);
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
	pipeline__finish_files(outputs->pipeline);
	if (!outputs->kineto)
		drop_kineto(outputs);
	if (outputs->execution_fd >= 0)
		outputs->settle_err = write_execution(outputs);
	settle(outputs);
	err = pipeline__finish(outputs->pipeline);
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
	for (int i = 0; i < PRODUCTS; i++)
		window_file_clear(&outputs->products[i].file, close_output);
	if (outputs->kineto)
		fclose(outputs->kineto);
	if (outputs->execution_fd >= 0)
		close(outputs->execution_fd);
	free(outputs->tag);
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
