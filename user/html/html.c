/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "html/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "html/page.h"
#include "html/points.h"
#include "html/timeline.h"
#include "report/report.h"

/* A report that is written into memory. */
struct inner {
	struct sink *sink;
	FILE *out;
	char *text;
	size_t size;
};

struct sink_html {
	struct sink sink; /* first: what the pipeline holds */
	FILE *out;
	struct inner text;
	struct inner json;
	struct points points;
	struct timeline *timelines[FBT_KIND_COUNT]; /* NULL: no step of that kind */
};

static int inner_open(struct inner *inner, enum report_format format)
{
	struct report_options options = {.format = format, .verbose = true};

	inner->out = open_memstream(&inner->text, &inner->size);
	inner->sink = inner->out ? sink_report__new(inner->out, &options) : NULL;
	return inner->sink ? 0 : -ENOMEM;
}

static void inner_free(struct inner *inner)
{
	if (inner->sink)
		inner->sink->free(inner->sink);
	if (inner->out)
		fclose(inner->out);
	free(inner->text);
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct sink_html *self = (struct sink_html *)sink;
	uint32_t kind = step->record.kind < FBT_KIND_COUNT ? step->record.kind : 0;
	struct step_parts parts;
	int err = self->text.sink->write_step(self->text.sink, window, step);

	if (!err)
		err = self->json.sink->write_step(self->json.sink, window, step);
	/* Its times are the profiler's: as in all other outputs, no figure has them. */
	if (step_is_profiled(step))
		return err;
	if (!err)
		err = points_add(&self->points, window, step);
	if (!err && !self->timelines[kind])
		self->timelines[kind] = timeline__new();
	if (err || !self->timelines[kind])
		return err ? err : -ENOMEM;
	step_split(step, &parts);
	timeline__add(self->timelines[kind], self->points.latest.start_ns, step_wall_ns(step),
		      step_total_ns(step), &parts, step->gpu);
	return 0;
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct sink_html *self = (struct sink_html *)sink;
	int err = self->text.sink->write_escalation(self->text.sink, window, step, escalation);

	if (!err)
		err = self->json.sink->write_escalation(self->json.sink, window, step, escalation);
	return err ? err : points_escalate(&self->points, window, escalation);
}

static int write_iteration(struct sink *sink, const struct window *window,
			   const struct iteration *iteration)
{
	struct sink_html *self = (struct sink_html *)sink;
	int err = self->text.sink->write_iteration(self->text.sink, window, iteration);

	return err ? err : self->json.sink->write_iteration(self->json.sink, window, iteration);
}

static void write_names(struct json *json)
{
	json_array_begin(json, "part_names");
	for (int i = 0; i < STEP_PARTS; i++)
		json_string(json, NULL, step_part_name((enum step_part)i, true));
	json_array_end(json);
	/* Of steps whose calls were not traced; null where a part is unknown then. */
	json_array_begin(json, "probe_part_names");
	for (int i = 0; i < STEP_PARTS; i++)
		json_string(json, NULL, step_part_name((enum step_part)i, false));
	json_array_end(json);
	json_array_begin(json, "cause_names");
	for (int i = 0; i < CAUSE_COUNT; i++)
		json_string(json, NULL, cause_name((enum cause_kind)i));
	json_array_end(json);
}

static void write_kinds(const struct sink_html *self, const struct window *window,
			struct json *json)
{
	json_array_begin(json, "kinds");
	for (uint32_t i = 0; i < FBT_KIND_COUNT; i++) {
		if (!self->timelines[i])
			continue;
		json_object_begin(json, NULL);
		json_uint(json, "kind", i);
		json_string(json, "name", window__kind_name(window, i));
		json_string(json, "arg", window->kinds[i].arg_names[points_arg(&self->points, i)]);
		timeline__write(self->timelines[i], json, "timeline");
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_data(const struct sink_html *self, const struct window *window, FILE *out)
{
	struct json json = {.out = out, .shown = true};

	json_object_begin(&json, NULL);
	json_uint(&json, "realtime_ms", window->record.realtime_ns / 1000000);
	json_array_begin(&json, "bins");
	for (uint32_t i = 0; i < TIMELINE_BINS; i++)
		json_uint(&json, NULL, timeline_bin_ns(i));
	json_array_end(&json);
	write_names(&json);
	write_kinds(self, window, &json);
	points_write(&self->points, &json, "points");
	json_string(&json, "text", self->text.text);
	json_raw(&json, "report", self->json.text);
	json_object_end(&json);
}

static int write_page(struct sink_html *self, const struct window *window)
{
	char *data = NULL, *title = NULL;
	const struct page_script script = page_report_script();
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	int err = -ENOMEM;

	if (!out)
		return err;
	write_data(self, window, out);
	if (fclose(out) == 0 &&
	    asprintf(&title, "%s on %s - ferrum-bpftrace", window->tag, window->host) >= 0)
		err = page_write(self->out, title, &script, data, size);
	free(title);
	free(data);
	if (!err && fflush(self->out))
		err = -errno;
	return err ? err : ferror(self->out) ? -EIO : 0;
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct sink_html *self = (struct sink_html *)sink;
	int err = points_end(&self->points);

	if (!err)
		err = self->text.sink->finish(self->text.sink, window, classifier);
	if (!err)
		err = self->json.sink->finish(self->json.sink, window, classifier);
	points_choose_args(&self->points, window, classifier);
	return err ? err : write_page(self, window);
}

static void free_sink(struct sink *sink)
{
	struct sink_html *self = (struct sink_html *)sink;

	inner_free(&self->text);
	inner_free(&self->json);
	points_clear(&self->points);
	for (uint32_t i = 0; i < FBT_KIND_COUNT; i++)
		timeline__free(self->timelines[i]);
	free(self);
}

struct sink *sink_html__new(FILE *out)
{
	struct sink_html *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "html",
		.is_file = true,
		.is_document = true,
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_iteration = write_iteration,
		.finish = finish,
		.free = free_sink,
	};
	self->out = out;
	if (inner_open(&self->text, REPORT_TEXT) || inner_open(&self->json, REPORT_JSON)) {
		free_sink(&self->sink);
		return NULL;
	}
	return &self->sink;
}
