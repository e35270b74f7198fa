/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/stats.h"
#include "gpu/text.h"
#include "judge/frames.h"
#include "judge/hang.h"
#include "judge/explained.h"
#include "judge/text.h"
#include "model/gpu.h"
#include "model/syscalls.h"

#define NAME_WIDTH 32
/* A category with less than this part of the step is not named beside the cause. */
#define SAID_PART 20
/* Less than this times the usual says nothing; shown as 1.1x or 1.0x. */
#define SLOWER 1.15

struct sink_alert {
	struct sink sink; /* must be first: the pipeline holds a pointer to it */
	struct escalation_thresholds thresholds;
	bool suppressing; /* the rate limit is exceeded, which was logged */
	bool names_process;
	struct hang_limit hangs;
};

/* Local time of day. time_ns is of the records' clock. */
static void add_time(struct line *line, const struct window *window, uint64_t time_ns)
{
	uint64_t unix_ns = window__unix_ns(window, time_ns);
	time_t seconds = (time_t)(unix_ns / NS_PER_S);
	struct tm local;
	char text[16];

	if (unix_ns && localtime_r(&seconds, &local) &&
	    strftime(text, sizeof(text), "%H:%M:%S", &local))
		line_add(line, "%s ", text);
}

static void add_step(struct line *line, const struct window *window, const struct step *step,
		     const struct escalation *escalation, bool names_process)
{
	double times = (double)step_total_ns(step) / (double)escalation->usual_ns;
	char name[4 * NAME_WIDTH + 1];

	shorten_name(name, sizeof(name), window__kind_name(window, step->record.kind), NAME_WIDTH);
	line_add(line, "#%" PRIu64 " %s", step->number, name);
	if (names_process || window->processes.count > 1)
		line_add(line, " of process %" PRIu32 ":", step->record.tgid);
	line_add(line, " %s", FORMAT_TIME(step_total_ns(step)));
	/* A step with little work may be wrong and yet take no longer than others of its class. */
	if (escalation->budget_given ||
	    (escalation->judged && times < SLOWER && escalation->budget_ns < step_total_ns(step)))
		line_add(line, ", budget %s", FORMAT_TIME(escalation->budget_ns));
	else if (escalation->judged && escalation->usual_ns && times >= SLOWER)
		line_add(line, ", %.*fx usual", times < 10, times);
}

/*
 * Adds the reason of the escalation, by its name in the outputs, and the other reasons that apply.
 */
static void add_reason(struct line *line, const struct escalation *escalation)
{
	enum escalation_reason reason = escalation->result.reason;
	uint32_t said = 1u << reason;
	char others[FIRED_SIZE];

	if (reason == ESCALATION_BOTH)
		said |= 1u << ESCALATION_CV_EXCEEDED | 1u << ESCALATION_EFFICIENCY_LOW;
	line_add(line, " [%s", escalation_reason_text(reason));
	if (escalation->fired & ~said)
		line_add(line, ", %s", escalation_fired_text(escalation->fired & ~said, others));
	line_add(line, escalation->judged ? "]" : ", not judged]");
}

/* Finds the sum of a category by its name; NULL for "none". */
static const struct fbt_sum *sum_of(const struct step *step, const char *category)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (!strcmp(category_name((enum fbt_category)i), category))
			return &step->record.sums[i];
	}
	return NULL;
}

/* Whether the evidence begins with the name, and has this time before any other figure. */
static bool begins_with(const char *evidence, const char *name, const char *time)
{
	const char *at = strstr(evidence, time);

	return !strncmp(evidence, name, strlen(name)) && evidence[strlen(name)] == ' ' && at &&
	       at < evidence + strcspn(evidence, "(,;") && at[-1] == ' ' &&
	       (!at[strlen(time)] || strchr(" ,;", at[strlen(time)]));
}

/* What the line already contains: a category, its time and its calls. */
struct said {
	const char *name;
	const char *time;
	uint64_t calls;
};

/*
 * Adds the longest call, without repeating a figure: it may be all of what the line contains
 * already.
 */
static void add_worst(struct line *line, const struct worst *worst, const struct said *said,
		      const char *separator)
{
	if (!worst->name)
		return;
	if (strcmp(worst->name, said->name) != 0 || strcmp(FORMAT_TIME(worst->ns), said->time) != 0)
		line_add(line, "%s longest %s %s", separator, worst->name, FORMAT_TIME(worst->ns));
	else if (said->calls != 1)
		line_add(line, "%s nearly all in one call", separator);
}

/* Adds the cause, the dominant category of ferrum's schema with its time, and the longest call. */
static void add_cause(struct line *line, const struct window *window, const struct step *step,
		      const struct escalation *escalation)
{
	const char *dominant = breakdown_dominant(&escalation->result.breakdown);
	const struct fbt_sum *sum = sum_of(step, dominant);
	char words[CAUSE_WORDS_SIZE], evidence[EVIDENCE_SIZE], time[FORMAT_MAX];
	char frames[FRAMES_SIZE];
	struct said said = {dominant, time, sum ? sum->calls : 0};
	struct worst worst;

	/* The sums do not count a call that is still open. */
	if (escalation->worst.header.flags & FBT_CALL_UNFINISHED)
		said.calls++;
	format_time(time, sum ? (double)sum->ns : 0);
	cause_words(escalation->cause.kind, words);
	cause_describe(&escalation->cause, window, evidence, sizeof(evidence));
	escalation_worst(escalation, window, step, &worst);
	line_add(line, "; %s: %s", words, evidence);
	if (escalation->cause.stack.count) {
		frames_describe(&escalation->cause.stack, window, frames, sizeof(frames));
		line_add(line, "; in %s", frames);
	}
	if (escalation->cause.waker_stack.count) {
		frames_describe(&escalation->cause.waker_stack, window, frames, sizeof(frames));
		line_add(line, "; ended in %s", frames);
		ended_after_add(line, cause_ended_after_ns(&escalation->cause));
	}
	if (sum && begins_with(evidence, dominant, time)) {
		add_worst(line, &worst, &said, ";");
		return;
	}
	/* A category that took a small part of the step is not named. */
	if (sum && sum->ns < step_total_ns(step) / SAID_PART)
		return;
	if (sum)
		line_add(line, "; %s %s", dominant, time);
	add_worst(line, &worst, &said, sum ? "," : ";");
}

/*
 * Adds, if it is known: "; GPU idle 1.80 ms of 6.20 ms: 1.10 ms futex (blocked), 400 us user code".
 */
static void add_gpu(struct line *line, const struct window *window, const struct step *step)
{
	const struct step_gpu *gpu = step->gpu;
	char text[GPU_IDLE_TEXT_SIZE];
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
		line_add(line, "; GPU busy all of %s", FORMAT_TIME(gpu->all.busy_ns));
	else
		line_add(line, "; GPU %s", gpu_idle_text(&about, text));
}

static void add_flaw(struct line *line, const struct window *window, const struct step *step)
{
	bool is_sampled = window->sampling[step->record.kind % FBT_KIND_COUNT].kind ||
			  step->record.header.flags & FBT_STEP_SAMPLED;

	if (step->complete)
		return;
	/* The window goes on, as a rule: its probes were switched off for a time. */
	if (step->record.end == FBT_END_TRUNCATED && is_sampled)
		line_add(line, "; incomplete: cut off");
	else if (step->record.end == FBT_END_TRUNCATED)
		line_add(line, "; incomplete: still open when the window ended");
	else if (step->record.end == FBT_END_EXITED)
		line_add(line, "; incomplete: its thread exited");
	else if (step->calls_truncated && !step->record.lost_calls)
		line_add(line, "; incomplete: more calls than are kept");
	else if (step->record.header.flags & FBT_STEP_MAYBE_PART && !step->record.lost_calls)
		line_add(line, "; incomplete: it may be only the rest of a step");
	else
		line_add(line, "; incomplete: records lost");
}

static void tell_of_limit(const struct escalation_thresholds *thresholds)
{
	log_info("more than %s escalation%s in %g s: further ones are only counted, and in the "
		 "profile (see --rate-limit)",
		 FORMAT_COUNT(thresholds->rate_limit), thresholds->rate_limit == 1 ? "" : "s",
		 (double)thresholds->rate_interval_ns / NS_PER_S);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct sink_alert *self = (struct sink_alert *)sink;
	char text[2048] = "";
	struct line line = {text, sizeof(text), 0};

	if (log_level() < LOG_INFO || escalation->repeated || escalation->as_usual)
		return 0;
	if (escalation->suppressed) {
		if (!self->suppressing)
			tell_of_limit(&self->thresholds);
		self->suppressing = true;
		if (escalation->fired & 1u << ESCALATION_MANUAL)
			log_info("step %" PRIu64 ", escalated by hand, is above that limit: try "
				 "again later",
				 step->number);
		return 0;
	}
	self->suppressing = false;
	/* Not the begin and the total: that of an interval is the sum of its threads. */
	add_time(&line, window, step->record.end_ns);
	add_step(&line, window, step, escalation, self->names_process);
	add_cause(&line, window, step, escalation);
	add_gpu(&line, window, step);
	add_flaw(&line, window, step);
	add_reason(&line, escalation);
	log_info("%s", text); /* log_info escapes the text */
	return 0;
}

/* What all threads of the process were in, a line for those in the same place. */
static void tell_of_threads(const struct window *window, const struct fbt_hang *hang)
{
	uint32_t others = hang_others(hang, window);
	const struct fbt_look_thread *group;
	char text[LOOK_GROUP_SIZE];

	for (size_t i = 0; i < LOOK_GROUPS_SHOWN && (group = hang_group(hang, window, i)); i++) {
		look_describe_group(group, window, text);
		log_info("    %s", text);
	}
	if (others)
		log_info("    %s more", FORMAT_COUNT(others));
}

static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	struct sink_alert *self = (struct sink_alert *)sink;
	char text[HANG_TEXT_SIZE + 32] = "", described[HANG_TEXT_SIZE];
	struct line line = {text, sizeof(text), 0};

	if (!hang_limit_take(&self->hangs, hang->time_ns)) {
		if (hang_limit_begins(&self->hangs))
			log_info("more than %d hangs in an hour: further ones are neither shown "
				 "nor sent, only counted, and in the profile",
				 HANGS_TOLD_MAX);
		return 0;
	}
	if (log_level() < LOG_INFO)
		return 0;
	hang_describe(hang, window, described);
	add_time(&line, window, hang->time_ns);
	line_add(&line, "hang: %s", described);
	log_info("%s", text);
	tell_of_threads(window, hang);
	return 0;
}

static int finish_alerts(struct sink *sink, const struct window *window,
			 const struct classifier *classifier)
{
	if (classifier__is_manual(classifier))
		log_info("nothing was escalated by hand: no step ended after the request");
	return 0;
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

void sink_alert__name_process(struct sink *sink)
{
	((struct sink_alert *)sink)->names_process = true;
}

struct sink *sink_alert__new(const struct escalation_thresholds *thresholds)
{
	struct sink_alert *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "messages",
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.finish = finish_alerts,
		.free = free_sink,
	};
	self->thresholds = *thresholds;
	return &self->sink;
}

struct sink_status {
	struct sink sink;      /* must be first: the pipeline holds a pointer to it */
	uint64_t shown_ns;     /* 0: not yet */
	uint64_t last_step_ns; /* when a line with steps was last shown; 0: not yet */
	uint64_t escalations;  /* all of the window */
	/* Since the line was shown: */
	struct stats *duration;
	uint64_t total_ns;
	uint64_t category_ns[FBT_CATEGORY_COUNT];
	bool calls_unknown; /* at least one step has unknown calls: none are shown */
	uint64_t gpu_ns;    /* length of the steps with GPU records */
	uint64_t gpu_busy_ns;
};

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct sink_status *self = (struct sink_status *)sink;

	(void)window;
	/* PyTorch's profiler made it longer. */
	if (step_is_profiled(step))
		return 0;
	if (!self->duration)
		self->duration = stats__new();
	if (!self->duration)
		return -ENOMEM;
	stats__add(self->duration, step_total_ns(step));
	self->total_ns += step_total_ns(step);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		self->category_ns[i] += step->record.sums[i].ns;
	self->calls_unknown |= !step_calls_known(step);
	if (step->gpu) {
		self->gpu_ns += step_wall_ns(step);
		self->gpu_busy_ns += step->gpu->all.busy_ns;
	}
	return 0;
}

static int count_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct sink_status *self = (struct sink_status *)sink;

	self->escalations++;
	return 0;
}

/* "  syscalls 12 %  futex", or nothing. */
static void format_calls(const struct sink_status *self, char *to, size_t size)
{
	struct breakdown breakdown = {.total_us = self->total_ns};
	uint64_t syscall_ns = 0;

	*to = '\0';
	if (self->calls_unknown)
		return;
	/* These figures are only compared with each other, so the unit does not matter. */
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		breakdown.category_us[i] = self->category_ns[i];
		syscall_ns += self->category_ns[i];
	}
	snprintf(to, size, "  syscalls %s  %s",
		 FORMAT_PERCENT(percent_of((double)syscall_ns, (double)self->total_ns)),
		 breakdown_dominant(&breakdown));
}

static bool is_any_sampled(const struct window *window)
{
	for (int i = 1; i < FBT_KIND_COUNT; i++)
		if (window->sampling[i].kind)
			return true;
	return false;
}

static void format_steps(const struct sink_status *self, const struct window *window, char *to,
			 size_t size, uint64_t since_ns)
{
	char gpu[FORMAT_MAX + 8] = "", calls[FORMAT_MAX + 32];

	format_calls(self, calls, sizeof(calls));
	if (self->gpu_ns)
		snprintf(gpu, sizeof(gpu), "  GPU %s",
			 FORMAT_PERCENT(
				 percent_of((double)self->gpu_busy_ns, (double)self->gpu_ns)));
	/* Of a sampled function only the steps of some moments are known. */
	snprintf(to, size, "%s steps/s%s  p50 %s%s%s",
		 FORMAT_NUMBER((double)stats__count(self->duration) * (double)NS_PER_S /
			       (double)since_ns),
		 is_any_sampled(window) ? " seen" : "",
		 FORMAT_TIME(stats__percentile(self->duration, 0.5)), calls, gpu);
}

static void start_over(struct sink_status *self)
{
	stats__free(self->duration);
	self->duration = NULL;
	self->total_ns = 0;
	self->calls_unknown = false;
	self->gpu_ns = 0;
	self->gpu_busy_ns = 0;
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		self->category_ns[i] = 0;
}

void sink_status__show(struct sink *sink, const struct window *window, uint64_t now_ns)
{
	struct sink_status *self = (struct sink_status *)sink;
	uint64_t start_ns = window->record.start_ns;
	uint64_t since_ns, quiet_ns;
	char steps[160], line[256];

	if (!start_ns || now_ns <= start_ns)
		return; /* the window's first record is still on its way */
	since_ns = now_ns - (self->shown_ns ? self->shown_ns : start_ns);
	if (!since_ns)
		return;
	if (self->duration) {
		format_steps(self, window, steps, sizeof(steps), since_ns);
		self->last_step_ns = now_ns;
	} else if (self->last_step_ns) {
		quiet_ns = now_ns - self->last_step_ns;
		snprintf(steps, sizeof(steps), "no step for %.0f s",
			 (double)quiet_ns / (double)NS_PER_S);
	} else {
		snprintf(steps, sizeof(steps), "no step yet");
	}
	snprintf(line, sizeof(line), "%.0f s  %s  escalated %s  lost %s",
		 (double)(now_ns - start_ns) / (double)NS_PER_S, steps,
		 FORMAT_COUNT(self->escalations), FORMAT_COUNT(window__lost_total(window)));
	log_status(line);
	start_over(self);
	self->shown_ns = now_ns;
}

static int end_line(struct sink *sink, const struct window *window,
		    const struct classifier *classifier)
{
	(void)sink;
	(void)window;
	log_status(NULL);
	return 0;
}

static void free_status(struct sink *sink)
{
	struct sink_status *self = (struct sink_status *)sink;

	stats__free(self->duration);
	free(self);
}

struct sink *sink_status__new(void)
{
	struct sink_status *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "status",
		.write_step = write_step,
		.write_escalation = count_escalation,
		.finish = end_line,
		.free = free_status,
	};
	return &self->sink;
}
