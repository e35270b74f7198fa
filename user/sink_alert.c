/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sink_alert.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "escalation_text.h"
#include "gpu_text.h"
#include "log.h"
#include "report_format.h"
#include "syscalls.h"

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

/* By its name; NULL of "none". */
static const struct fbt_sum *sum_of(const struct step *step, const char *category)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (!strcmp(category_name((enum fbt_category)i), category))
			return &step->record.sums[i];
	}
	return NULL;
}

/* The evidence begins with the name and has its time: before what is usual, and other figures. */
static bool begins_with(const char *evidence, const char *name, const char *time)
{
	const char *at = strstr(evidence, time);

	return !strncmp(evidence, name, strlen(name)) && evidence[strlen(name)] == ' ' && at &&
	       at < evidence + strcspn(evidence, "(,;") && at[-1] == ' ' &&
	       (!at[strlen(time)] || strchr(" ,;", at[strlen(time)]));
}

/* What was said before: a category, its time and its calls. */
struct said {
	const char *name;
	const char *time;
	uint64_t calls;
};

/* No figure is told twice: of all that was said one call may be nearly all. */
static void add_worst(struct line *line, const struct worst *worst, const struct said *said,
		      const char *separator)
{
	char time[FORMAT_MAX];

	if (!worst->name)
		return;
	format_time(time, (double)worst->ns);
	if (strcmp(worst->name, said->name) != 0 || strcmp(time, said->time) != 0)
		add(line, "%s longest %s %s", separator, worst->name, time);
	else if (said->calls != 1)
		add(line, "%s nearly all in one call", separator);
}

/* The seed's dominant category with its time, the longest call, and the cause. */
static void add_cause(struct line *line, const struct window *window, const struct step *step,
		      const struct escalation *escalation)
{
	const char *dominant = breakdown_dominant(&escalation->result.breakdown);
	const struct fbt_sum *sum = sum_of(step, dominant);
	char words[CAUSE_WORDS_SIZE], evidence[EVIDENCE_SIZE], time[FORMAT_MAX];
	struct said said = {dominant, time, sum ? sum->calls : 0};
	struct worst worst;
	bool in_evidence;

	/* The sums do not count a call that is still open. */
	if (escalation->worst.header.flags & FBT_CALL_UNFINISHED)
		said.calls++;
	format_time(time, sum ? (double)sum->ns : 0);
	cause_words(escalation->cause.kind, words);
	cause_describe(&escalation->cause, window, evidence, sizeof(evidence));
	escalation_worst(escalation, window, step, &worst);
	in_evidence = sum && begins_with(evidence, dominant, time);
	if (!in_evidence) {
		if (sum)
			add(line, "; %s %s", dominant, time);
		add_worst(line, &worst, &said, sum ? "," : ";");
	}
	add(line, "; %s: %s", words, evidence);
	if (in_evidence)
		add_worst(line, &worst, &said, ";");
}

/* "; GPU idle 1.80 ms of 6.20 ms: 1.10 ms futex (blocked), 400 us user code", if that is known */
static void add_gpu(struct line *line, const struct window *window, const struct step *step)
{
	const struct step_gpu *gpu = step->gpu;
	char text[GPU_IDLE_TEXT_SIZE], busy[FORMAT_MAX];
	struct gpu_text about;

	if (!gpu)
		return;
	about = (struct gpu_text){
		.figures = &gpu->all,
		.total_ns = step_wall_ns(step),
		.run_delay_ns = step->record.header.flags & FBT_STEP_SCHED_UNKNOWN
					? UINT64_MAX
					: step->record.run_delay_ns,
		.arch = (enum fbt_arch)window->record.arch,
		.incomplete = !gpu->complete,
	};
	if (!gpu->all.idle_ns)
		add(line, "; GPU busy all of %s", format_time(busy, (double)gpu->all.busy_ns));
	else
		add(line, "; GPU %s", gpu_idle_text(&about, text));
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
		if (escalation->fired & 1u << ESCALATION_MANUAL)
			log_info("step %" PRIu64 " is the one that was asked for, and over that "
				 "limit: ask again later",
				 step->number);
		return 0;
	}
	self->suppressing = false;
	add_step(&line, window, step, escalation);
	add_reason(&line, escalation);
	add_cause(&line, window, step, escalation);
	add_gpu(&line, window, step);
	add_flaw(&line, step);
	log_info("%s", line.text);
	return 0;
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	if (classifier__is_manual(classifier))
		log_info("the escalation that was asked for was of no step: none ended after that");
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
		.finish = finish,
		.free = free_sink,
	};
	self->thresholds = *thresholds;
	return &self->sink;
}
