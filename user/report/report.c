/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report/report.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/wrap.h"
#include "report/part.h"
#include "tally/tally.h"

struct sink_report {
	struct sink sink; /* first: what the pipeline holds */
	FILE *out;
	struct report_options options;
	struct tally tally;
};

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct sink_report *self = (struct sink_report *)sink;

	return self->options.format == REPORT_NONE ? 0 : tally_add(&self->tally, window, step);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct sink_report *self = (struct sink_report *)sink;

	if (self->options.format == REPORT_NONE)
		return 0;
	return tally_escalate(&self->tally, window, step, escalation);
}

static int write_iteration(struct sink *sink, const struct window *window,
			   const struct iteration *iteration)
{
	struct sink_report *self = (struct sink_report *)sink;

	if (self->options.format == REPORT_NONE)
		return 0;
	return iteration_tally_add(&self->tally.iterations, window, iteration);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct sink_report *self = (struct sink_report *)sink;
	struct report report = {
		.out = self->out,
		.color = self->options.color,
		.verbose = self->options.verbose,
		.width = terminal_columns(self->out, REPORT_WIDTH),
		.files = self->options.files,
		.window = window,
		.tally = &self->tally,
		.classifier = classifier,
	};
	int err = 0;

	if (self->options.format == REPORT_TEXT)
		report_text_write(&report);
	else if (self->options.format == REPORT_JSON)
		report_json_write(&report);
	if (fflush(self->out))
		err = -errno;
	else if (ferror(self->out))
		err = -EIO;
	return err;
}

static void free_sink(struct sink *sink)
{
	struct sink_report *self = (struct sink_report *)sink;

	tally_clear(&self->tally);
	free(self);
}

struct sink *sink_report__new(FILE *out, const struct report_options *options)
{
	struct sink_report *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "report",
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_iteration = write_iteration,
		.finish = finish,
		.free = free_sink,
	};
	self->out = out;
	self->options = *options;
	return &self->sink;
}

static const char *const style_codes[] = {
	[STYLE_BOLD] = "\033[1m",
	[STYLE_WARN] = "\033[1;33m",
	[STYLE_DIM] = "\033[2m",
};

/* Additional indent of the lines that continue a line of prose. */
#define HANGING_INDENT 2

/* Prints text that begins at a column. The lines that continue it begin at indent. */
static void print_wrapped(const struct report *report, const char *text, size_t column,
			  size_t indent)
{
	size_t bytes = wrap_break(text, report->width - column);

	fprintf(report->out, "%.*s", (int)bytes, text);
	for (text += bytes; *(text += strspn(text, " ")); text += bytes) {
		bytes = wrap_break(text, report->width - indent);
		fprintf(report->out, "\n%*s%.*s", (int)indent, "", (int)bytes, text);
	}
}

void report_line(const struct report *report, enum report_style style, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = terminal_text(format, args);
	va_end(args);
	if (report->color)
		fputs(style_codes[style], report->out);
	/* A heading keeps its spaces, which are those of its table. */
	if (text && style == STYLE_DIM)
		fputs(text, report->out);
	else if (text)
		print_wrapped(report, text, 0, strspn(text, " ") + HANGING_INDENT);
	fputs(report->color ? "\033[0m\n" : "\n", report->out);
	free(text);
}

void report_field(const struct report *report, const char *label, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = terminal_text(format, args);
	va_end(args);
	if (!text)
		return;
	if (report->color && *label)
		fprintf(report->out, "\033[1m%-*s\033[0m", LABEL_WIDTH, label);
	else
		fprintf(report->out, "%-*s", LABEL_WIDTH, label);
	print_wrapped(report, text, LABEL_WIDTH, LABEL_WIDTH);
	fputc('\n', report->out);
	free(text);
}

void report_files(const struct report *report)
{
	bool has_trace = false;

	for (size_t i = 0; report->files && report->files[i]; i++) {
		report_field(report, i ? "" : "Files", "%s", report->files[i]);
		has_trace |= !fnmatch("trace *.json", report->files[i], 0) ||
			     !fnmatch("trace *.json.gz", report->files[i], 0);
	}
	if (has_trace)
		report_field(report, "",
			     "--trace FILE.pftrace is better to read in Perfetto: it has names, "
			     "arrows to who ended a wait, and counters");
}
