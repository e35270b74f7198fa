/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sink_alert.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "escalation_text.h"
#include "log.h"
#include "report_format.h"
#include "syscalls.h"

#define NS_PER_US  1000
#define NS_PER_S   1e9
#define NAME_WIDTH 32

struct sink_alert {
	struct sink sink; /* first: what the pipeline holds */
	struct escalation_thresholds thresholds;
	bool suppressing; /* and it was said */
};

/* What has no room is cut; log_info adds the newline and escapes. */
struct line {
	char text[2048];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	size_t room = sizeof(line->text) - line->used;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->used, room, format, args);
	va_end(args);
	if (length > 0)
		line->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_step(struct line *line, const struct window *window, const struct step *step,
		     const struct escalation *escalation)
{
	char name[4 * NAME_WIDTH + 1], took[FORMAT_MAX], budget[FORMAT_MAX];

	shorten_name(name, sizeof(name), window__kind_name(window, step->record.kind), NAME_WIDTH);
	format_time(took, (double)step_total_ns(step));
	add(line, "step %" PRIu64 " %s", step->number, name);
	if (window->processes.count > 1)
		add(line, " of %" PRIu32, step->record.tgid);
	add(line, " %s", took);
	if (escalation->judged || escalation->budget_given)
		add(line, ", budget %s", format_time(budget, (double)escalation->budget_ns));
}

static void add_reason(struct line *line, const struct escalation *escalation)
{
	enum escalation_reason reason = escalation->result.reason;
	uint32_t said = 1u << reason;
	char others[FIRED_SIZE];

	if (reason == ESCALATION_BOTH)
		said |= 1u << ESCALATION_CV_EXCEEDED | 1u << ESCALATION_EFFICIENCY_LOW;
	add(line, ": %s", escalation_otlp_value(reason));
	if (escalation->fired & ~said)
		add(line, " (and %s)", escalation_fired_text(escalation->fired & ~said, others));
	if (!escalation->judged)
		add(line, " (not judged)");
}

/* By the call itself, or by its category where calls are not known or some were lost. */
static void add_longest(struct line *line, const struct window *window, const struct step *step,
			const struct fbt_call *worst)
{
	bool is_known = worst->duration_ns && step->complete;
	uint64_t longest_ns = worst->duration_ns;
	char time[FORMAT_MAX], label[24];
	const char *name = syscall_label((enum fbt_arch)window->record.arch, worst->nr, label);

	for (int i = 0; i < FBT_CATEGORY_COUNT && !is_known; i++) {
		if (step->record.sums[i].max_ns <= longest_ns)
			continue;
		longest_ns = step->record.sums[i].max_ns;
		name = category_name((enum fbt_category)i);
	}
	if (longest_ns)
		add(line, ", longest %s %s", name, format_time(time, (double)longest_ns));
}

/* The seed's dominant category with its time, and the longest call. */
static void add_calls(struct line *line, const struct window *window, const struct step *step,
		      const struct escalation *escalation)
{
	const struct breakdown *breakdown = &escalation->result.breakdown;
	const char *dominant = breakdown_dominant(breakdown);
	char time[FORMAT_MAX];

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (!strcmp(category_name((enum fbt_category)i), dominant))
			add(line, "; %s %s", dominant,
			    format_time(time, (double)breakdown->category_us[i] * NS_PER_US));
	}
	add_longest(line, window, step, &escalation->worst);
}

static void add_cause(struct line *line, const struct window *window, const struct cause *cause)
{
	char words[CAUSE_WORDS_SIZE], evidence[EVIDENCE_SIZE];

	cause_describe(cause, window, evidence, sizeof(evidence));
	add(line, "; %s: %s", cause_words(cause->kind, words), evidence);
}

static void add_flaw(struct line *line, const struct step *step)
{
	if (step->complete)
		return;
	if (step->record.end == FBT_END_TRUNCATED)
		add(line, "; incomplete: still open when the window ended");
	else if (step->record.end == FBT_END_EXITED)
		add(line, "; incomplete: its thread exited");
	else
		add(line, "; incomplete: records lost");
}

static void tell_of_limit(const struct escalation_thresholds *thresholds)
{
	char limit[FORMAT_MAX];

	log_info("more than %s escalation%s in %g s: further ones are counted, not shown; see "
		 "--rate-limit",
		 format_count(limit, thresholds->rate_limit),
		 thresholds->rate_limit == 1 ? "" : "s",
		 (double)thresholds->rate_interval_ns / NS_PER_S);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct sink_alert *self = (struct sink_alert *)sink;
	struct line line = {.used = 0};

	if (log_level() < LOG_INFO || escalation->repeated)
		return 0;
	if (escalation->suppressed) {
		if (!self->suppressing)
			tell_of_limit(&self->thresholds);
		self->suppressing = true;
		return 0;
	}
	self->suppressing = false;
	add_step(&line, window, step, escalation);
	add_reason(&line, escalation);
	add_calls(&line, window, step, escalation);
	add_cause(&line, window, &escalation->cause);
	add_flaw(&line, step);
	log_info("%s", line.text);
	return 0;
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

struct sink *sink_alert__new(const struct escalation_thresholds *thresholds)
{
	struct sink_alert *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "messages",
		.write_escalation = write_escalation,
		.free = free_sink,
	};
	self->thresholds = *thresholds;
	return &self->sink;
}
