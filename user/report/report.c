/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "report/part.h"
#include "report/tally.h"

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
	return escalation_tally_add(&self->tally.escalations, window, step, escalation);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct sink_report *self = (struct sink_report *)sink;
	struct report report = {
		.out = self->out,
		.color = self->options.color,
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

void report_line(const struct report *report, enum report_style style, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = terminal_text(format, args);
	va_end(args);
	if (report->color)
		fputs(style_codes[style], report->out);
	fputs(text ? text : "", report->out);
	fputs(report->color ? "\033[0m\n" : "\n", report->out);
	free(text);
}

/* Bytes of text that go on a line of columns characters: up to a space, else a "::" or "/". */
static size_t find_break(const char *text, size_t columns)
{
	size_t bytes = 0, space = 0, other = 0;

	while (text[bytes]) {
		if ((text[bytes] & 0xc0) != 0x80 && !columns--)
			break;
		bytes++;
		if (text[bytes] == ' ')
			space = bytes;
		else if (text[bytes - 1] == '/' ||
			 (bytes > 1 && !strncmp(text + bytes - 2, "::", 2)))
			other = bytes;
	}
	if (!text[bytes] || text[bytes] == ' ')
		return bytes;
	if (space)
		return space;
	return other ? other : bytes;
}

void report_field(const struct report *report, const char *label, const char *format, ...)
{
	const char *rest;
	va_list args;
	char *text;

	va_start(args, format);
	text = terminal_text(format, args);
	va_end(args);
	if (!text)
		return;
	rest = text;
	do {
		size_t bytes = find_break(rest, report->width - LABEL_WIDTH);

		if (report->color && *label)
			fprintf(report->out, "\033[1m%-*s\033[0m", LABEL_WIDTH, label);
		else
			fprintf(report->out, "%-*s", LABEL_WIDTH, label);
		fprintf(report->out, "%.*s\n", (int)bytes, rest);
		rest += bytes;
		while (*rest == ' ')
			rest++;
		label = "";
	} while (*rest);
	free(text);
}
