/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>

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
