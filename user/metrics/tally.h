/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the metrics say, summed up over all windows and processes of one run of the tool: nothing is
 * ever subtracted, so each counter grows until the tool ends. Memory and labels are bounded: beyond
 * METRICS_SERIES_MAX combinations of engine, step function and rank, further ones are one called
 * "other". Pure: the caller brings times.
 */
#ifndef FBT_METRICS_TALLY_H
#define FBT_METRICS_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "judge/classify.h"
#include "metrics/histogram.h"
#include "model/step.h"
#include "model/window.h"

#define METRICS_SERIES_MAX 64
#define METRICS_OTHER	   "other"
#define METRICS_LABEL_MAX  128

/* Steps of one engine (name of its processes), step function and rank. */
struct metrics_series {
	char engine[METRICS_LABEL_MAX];
	char kind[METRICS_LABEL_MAX];
	char rank[48]; /* "" if it is not known */
	struct histogram duration;
	uint64_t incomplete;
	uint64_t steps;
	uint64_t hangs;
	uint64_t gap_ns;
	uint64_t parts_ns[2][STEP_PARTS]; /* [1]: of steps whose calls are known */
	uint64_t escalations[ESCALATION_REASON_COUNT];
	uint64_t not_shown;
	uint64_t unsteady; /* repeated or as usual */
	uint64_t cause_steps[CAUSE_COUNT];
	uint64_t cause_extra_ns[CAUSE_COUNT];
	uint64_t last_end_ns;  /* end of the last step, CLOCK_MONOTONIC */
	uint64_t last_step_ns; /* the same as Unix time */
};

struct metrics_tally {
	struct histogram_bounds bounds;
	VEC(struct metrics_series *) series;
	uint64_t folded_steps; /* whose series is "other" */
	uint64_t windows;
	uint64_t traced_ns;
	uint64_t lost[FBT_LOST_COUNT];
	uint64_t skipped;
	uint64_t probe_cost_ns;
	/* Of the window that is open, or was last; its exports are told apart by nothing. */
	bool is_open;
	uint64_t window_start_ns;
	uint64_t window_lost[FBT_LOST_COUNT];
	uint64_t window_traced_ns;
	uint64_t window_steps; /* with probes of their own */
	uint64_t window_calls; /* in steps */
	uint64_t window_cost_ns;
	/* As far as it is known; the window's own comes at its end. */
	uint64_t call_ps;
	uint64_t probes_ns;
	uint64_t processes;
};

/* NULL: -ENOMEM. */
struct metrics_tally *metrics_tally__new(void);
void metrics_tally__free(struct metrics_tally *tally);

/* 0 or -ENOMEM. */
int metrics_tally__add_step(struct metrics_tally *tally, const struct window *window,
			    const struct step *step);
int metrics_tally__add_escalation(struct metrics_tally *tally, const struct window *window,
				  const struct step *step, const struct escalation *escalation);
int metrics_tally__add_hang(struct metrics_tally *tally, const struct window *window,
			    const struct fbt_hang *hang);

/*
 * Takes what a window has lost so far. Several exports of one window tell the same losses, which
 * count once: the largest of each. But each export has records of its own that it could not read or
 * keep, one that goes to all of them too: skipped has how many of this one are counted; the caller
 * keeps it, 0 at first. now_ns: CLOCK_MONOTONIC, or the window's end.
 */
void metrics_tally__see(struct metrics_tally *tally, const struct window *window, uint64_t *skipped,
			uint64_t now_ns);

/* The window is closed. */
void metrics_tally__close(struct metrics_tally *tally);

#endif
