/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a live view shows, from the steps as they come: the last seconds by class, the last minutes
 * by second, and the newest slow steps in words. Bounded memory; pure but for memory: no clock, no
 * terminal.
 */
#ifndef FBT_TOP_MODEL_H
#define FBT_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/log.h"
#include "judge/cause.h"
#include "judge/classify.h"
#include "judge/verdict.h"
#include "model/step.h"
#include "model/window.h"

/* Figures are of so many whole seconds, the last ones. */
#define TOP_RECENT 10
/* Seconds that the strip and the table of causes look back. */
#define TOP_HISTORY 300
/* Classes at one time; steps of further ones are summed up in the last. */
#define TOP_CLASSES 64
/* Lengths that are kept of a second; of more steps, a random sample. */
#define TOP_SAMPLES 8192
/* Slow steps that are kept: the newest. */
#define TOP_SLOW 256
/* Slow steps of a second that are put in words; more are only counted. */
#define TOP_SLOW_PER_S 100
#define TOP_MESSAGES   32
#define TOP_ALL_KINDS  UINT32_MAX

/* What steps of a class have in common. */
struct top_key {
	uint32_t tgid;
	uint32_t kind; /* TOP_ALL_KINDS: those for which there was no room */
	struct step_class class;
};

struct top_sums {
	uint64_t count;
	uint64_t total_ns;
	uint64_t max_ns;
	uint64_t parts_ns[STEP_PARTS];
	uint64_t gil_ns; /* of the part futex */
	uint64_t gc_ns;	 /* of own code */
	uint64_t calls;
	uint64_t gpu_ns; /* length of the steps whose GPU records are complete */
	uint64_t gpu_busy_ns;
	uint64_t gpu_launches; /* CUDA calls that launched work */
	uint64_t gpu_nodes;    /* work that is part of CUDA graphs */
	uint64_t unknown;      /* steps whose calls were not traced */
	uint64_t incomplete;   /* steps */
	uint64_t profiled;     /* steps while PyTorch's profiler was on */
};

/* A row of the table of classes. */
struct top_row {
	struct top_key key;
	struct top_sums sums;
	uint64_t p50_ns;
	uint64_t p95_ns;
	uint64_t p99_ns;
};

struct top_second {
	uint64_t steps;
	uint64_t p99_ns;
	uint64_t max_ns;
	uint64_t slow; /* escalated steps that ended in it */
};

struct top_cause {
	enum cause_kind kind;
	uint64_t steps;
	uint64_t extra_ns; /* more than usual */
};

/* The figures of a moment. */
struct top_figures {
	uint64_t now_ns;
	uint64_t seconds; /* that the figures are of: 0 to TOP_RECENT */
	struct top_row all;
	struct top_row rows[TOP_CLASSES]; /* most time first */
	size_t row_count;
	bool sampled;				/* percentiles are of a random sample */
	struct top_second history[TOP_HISTORY]; /* the newest whole second is the last */
	uint64_t history_seconds;		/* of them, those since the window began */
	struct top_cause causes[CAUSE_COUNT];	/* of the history; most time first */
	size_t cause_count;
	uint64_t last_step_ns;	/* CLOCK_MONOTONIC; 0: no step yet */
	uint64_t slow_total;	/* ever */
	uint64_t slow_left_out; /* of them, those not put in words */
};

#define TOP_TEXT   1024
#define TOP_STACK  512
#define TOP_OTHERS 2048

/* A slow step, or a hang, in words. Texts come from the target: they may contain anything. */
struct top_slow {
	uint64_t sequence; /* 1, 2, … */
	uint64_t end_ns;
	uint64_t realtime_ns; /* of its end; 0: not known */
	uint64_t number;      /* of the step; 0: a hang */
	struct top_key key;
	uint32_t tid;
	uint64_t total_ns; /* 0 of a hang, whose evidence says it */
	double times;	   /* of the usual length; 0: not known */
	enum cause_kind cause;
	uint64_t cause_ns;
	uint64_t extra_ns; /* of it, more than usual */
	bool suppressed;   /* over the rate limit: no other output for people shows it */
	bool complete;
	bool gil_known;
	struct step_parts parts;
	bool calls_known;
	bool names_culprit; /* see cause_advice_beside() */
	bool cause_calls_known;
	uint32_t detail; /* of its window */
	bool gap_known;
	uint64_t gap_ns;
	uint64_t gil_ns;
	uint64_t gc_ns;
	uint64_t gpu_busy_ns; /* UINT64_MAX: no GPU records */
	uint32_t minor_faults;
	uint32_t major_faults;
	char kind[64];
	char reason[FIRED_SIZE];
	char evidence[TOP_TEXT];
	char stack[TOP_STACK];	     /* "" if there is none */
	char waker_stack[TOP_STACK]; /* of who ended the wait, and when */
	char holder_stack[TOP_STACK];
	char others[TOP_OTHERS]; /* what other threads were in; of a hang all */
};

struct top_message {
	enum log_level level;
	char text[256];
};

struct top_model;

struct top_model *top_model__new(void); /* NULL: -ENOMEM */
void top_model__free(struct top_model *model);

/* 0 or -ENOMEM: the step counts, but not in the percentiles. */
int top_model__add_step(struct top_model *model, const struct window *window,
			const struct step *step);
void top_model__add_escalation(struct top_model *model, const struct window *window,
			       const struct step *step, const struct escalation *escalation);
void top_model__add_hang(struct top_model *model, const struct window *window,
			 const struct fbt_hang *hang);
void top_model__add_message(struct top_model *model, enum log_level level, const char *text);

/* The figures at now_ns of the steps of a kind, or of TOP_ALL_KINDS. 0 or -ENOMEM. */
int top_model__figures(struct top_model *model, uint64_t now_ns, uint32_t kind,
		       struct top_figures *figures);

/* Until top_model__release() the slow steps are those of now. 0 or -ENOMEM: they are not. */
int top_model__hold(struct top_model *model);
void top_model__release(struct top_model *model);

/* The newest slow step is at 0; NULL after the oldest that is kept. Valid until the next one. */
const struct top_slow *top_model__slow(const struct top_model *model, size_t index);

/* The newest message is at 0; NULL after the oldest that is kept. */
const struct top_message *top_model__message(const struct top_model *model, size_t index);

#endif
