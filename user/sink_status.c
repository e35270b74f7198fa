/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sink_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_step.h"
#include "log.h"
#include "report_format.h"
#include "stats.h"

#define SECOND_NS 1e9

struct sink_status {
	struct sink sink;      /* first: what the pipeline holds */
	uint64_t shown_ns;     /* 0: not yet */
	uint64_t last_step_ns; /* when the line was shown that had the last step; 0: none yet */
	uint64_t escalations;  /* all of the window */
	/* Since the line was shown: */
	struct stats *duration;
	uint64_t total_ns;
	uint64_t category_ns[FBT_CATEGORY_COUNT];
	uint64_t gpu_ns; /* of steps with GPU records … */
	uint64_t gpu_busy_ns;
};

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct sink_status *self = (struct sink_status *)sink;

	(void)window;
	if (!self->duration)
		self->duration = stats__new();
	if (!self->duration)
		return -ENOMEM;
	stats__add(self->duration, step_total_ns(step));
	self->total_ns += step_total_ns(step);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		self->category_ns[i] += step->record.sums[i].ns;
	if (step->gpu) {
		self->gpu_ns += step_wall_ns(step);
		self->gpu_busy_ns += step->gpu->all.busy_ns;
	}
	return 0;
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct sink_status *self = (struct sink_status *)sink;

	self->escalations++;
	return 0;
}

static void format_steps(struct sink_status *self, char *to, size_t size, uint64_t since_ns)
{
	char p50[FORMAT_MAX], share[FORMAT_MAX], rate[FORMAT_MAX], busy[FORMAT_MAX];
	char gpu[FORMAT_MAX + 8] = "";
	struct breakdown breakdown = {.total_us = self->total_ns};
	uint64_t syscall_ns = 0;

	/* Only compared with each other, so the unit does not matter. */
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		breakdown.category_us[i] = self->category_ns[i];
		syscall_ns += self->category_ns[i];
	}
	format_number(rate, (double)stats__count(self->duration) * SECOND_NS / (double)since_ns);
	format_time(p50, (double)stats__percentile(self->duration, 0.5));
	format_percent(share, percent_of((double)syscall_ns, (double)self->total_ns));
	if (self->gpu_ns)
		snprintf(gpu, sizeof(gpu), "  GPU %s",
			 format_percent(busy, percent_of((double)self->gpu_busy_ns,
							 (double)self->gpu_ns)));
	snprintf(to, size, "%s steps/s  p50 %s  syscalls %s  %s%s", rate, p50, share,
		 breakdown_dominant(&breakdown), gpu);
}

static void start_over(struct sink_status *self)
{
	stats__free(self->duration);
	self->duration = NULL;
	self->total_ns = 0;
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
	char steps[160], line[256], escalations[FORMAT_MAX], lost[FORMAT_MAX];

	if (!start_ns || now_ns <= start_ns)
		return; /* the window's first record is still on its way */
	since_ns = now_ns - (self->shown_ns ? self->shown_ns : start_ns);
	if (!since_ns)
		return;
	if (self->duration) {
		format_steps(self, steps, sizeof(steps), since_ns);
		self->last_step_ns = now_ns;
	} else if (self->last_step_ns) {
		quiet_ns = now_ns - self->last_step_ns;
		snprintf(steps, sizeof(steps), "no step for %.0f s", (double)quiet_ns / SECOND_NS);
	} else {
		snprintf(steps, sizeof(steps), "no step yet");
	}
	format_count(lost, window__lost_total(window));
	format_count(escalations, self->escalations);
	snprintf(line, sizeof(line), "%.0f s  %s  escalated %s  lost %s",
		 (double)(now_ns - start_ns) / SECOND_NS, steps, escalations, lost);
	log_status(line);
	start_over(self);
	self->shown_ns = now_ns;
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	(void)sink;
	(void)window;
	log_status(NULL);
	return 0;
}

static void free_sink(struct sink *sink)
{
	struct sink_status *self = (struct sink_status *)sink;

	if (!self)
		return;
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
		.write_escalation = write_escalation,
		.finish = finish,
		.free = free_sink,
	};
	return &self->sink;
}
