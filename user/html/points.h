/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The steps that a page draws one by one. Up to POINTS_MAX all steps are kept. Beyond that the
 * escalated ones are kept, and of so many others that follow each other the longest one.
 */
#ifndef FBT_HTML_POINTS_H
#define FBT_HTML_POINTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/json.h"
#include "base/vec.h"
#include "judge/classify.h"
#include "model/step.h"
#include "model/window.h"

#define POINTS_MAX 50000

/* Escalated steps that are kept for certain; further ones are thinned as all others. */
#define POINTS_WRONG_MAX 20000

/* Escalated steps whose cause is kept in words: the first ones. */
#define POINTS_WORDS_MAX 2000

struct point {
	uint64_t number;
	uint64_t start_ns; /* since the begin of the window */
	uint64_t total_ns;
	uint64_t part_ns[STEP_PARTS];
	int64_t args[FBT_ARG_COUNT];
	uint32_t arg_mask;
	uint32_t tid;
	uint8_t kind;
	uint8_t cause; /* enum cause_kind + 1; 0: not escalated */
	bool parts_known;
	bool calls_known;
	bool complete;
	uint64_t usual_ns; /* of an escalated step, or 0 */
	char *words;	   /* its cause; NULL: not kept, or not escalated */
};

typedef VEC(struct point) point_vec;

struct points {
	point_vec kept;	     /* ordinary ones */
	point_vec wrong;     /* escalated ones */
	struct point latest; /* the step that came last: it may yet be escalated */
	bool has_latest;
	uint64_t seen;
	uint32_t stride; /* an ordinary point stands for up to this many steps; 0 is 1 */
	uint32_t wordy;	 /* points with words */
	uint32_t arg_masks[FBT_KIND_COUNT]; /* the arguments that any step had */
	uint32_t chosen[FBT_KIND_COUNT];    /* the bit of one of them; 0: none was chosen */
	struct {
		struct point longest;
		uint32_t count;
	} groups[FBT_KIND_COUNT];
};

/* 0 or -ENOMEM, with what was there before kept. */
int points_add(struct points *points, const struct window *window, const struct step *step);

/* The step that was added last is escalated. -ENOMEM: without words. */
int points_escalate(struct points *points, const struct window *window,
		    const struct escalation *escalation);

/* After the last step. */
int points_end(struct points *points);

/*
 * After the last step too: the steps of kinds with classes by an argument are shown with that one,
 * if any step had it.
 */
void points_choose_args(struct points *points, const struct window *window,
			const struct classifier *classifier);

/* Which argument of a kind's steps is written: the chosen one, else the first that any had. */
uint32_t points_arg(const struct points *points, uint32_t kind);

/*
 * Writes {"seen":…,"stride":…,"escalated_kept":…,"columns":{…},"words":[[number, text], …]};
 * escalated_kept: how many of the escalated steps, the first ones, were not thinned.
 */
void points_write(const struct points *points, struct json *json, const char *key);

void points_clear(struct points *points);

#endif
