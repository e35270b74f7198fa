/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The comparison of two sides: classes of steps with their verdicts, and reasons to doubt them. */
#ifndef FBT_DIFF_RESULT_H
#define FBT_DIFF_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "diff/cluster.h"
#include "diff/interval.h"
#include "diff/side.h"

#define SIDES	  2   /* A, B */
#define QUANTILES 3   /* p50, p95, p99 */
#define CURVE	  101 /* points of a distribution */

extern const char *const diff_share_names[QUANTILES]; /* "p50" … */

struct diff_options {
	double margin;	  /* shares: within that A and B are the same */
	double threshold; /* a class that is worse by so much is a regression */
};

struct class_side {
	uint64_t steps;
	uint64_t compared; /* of them; less if sizes that only the other has are left out */
	uint64_t ns;	   /* of all */
	double mean_ns;	   /* of those that are compared, by their weights */
	struct quantile quantiles[QUANTILES];
	uint64_t curve_ns[CURVE]; /* quantiles 0, 0.01 … 1 */
	bool parts_known;
	double part_ns[STEP_PARTS]; /* means, by the same weights */
	bool calls_known;	    /* else the parts have other names (step_part_name) */
	struct {
		uint64_t steps;
		uint64_t extra_ns;
	} causes[CAUSE_COUNT];
};

struct diff_class {
	const char *kind;     /* borrowed from the sides */
	const char *argument; /* its size; NULL: its work */
	uint64_t low, high;   /* sizes, both included: as seen in the two files */
	bool by_bin;
	bool is_cut; /* see cluster.h */
	struct class_side sides[SIDES];
	struct change changes[QUANTILES];
	/*
	 * Worse, if any of the quantiles is; else better, if any is; same only if all three are;
	 * else it cannot be told.
	 */
	enum verdict verdict;
	/* It is worse, and the quantile that is by the threshold or more. */
	bool is_regression;
};

struct doubt {
	bool is_serious; /* the figures cannot be trusted; else it is for information */
	char *text;	 /* a sentence without a full stop */
};

/* Two classes of a function by work, each of which the other side has no counterpart of. */
struct moved {
	const struct diff_class *of[SIDES];
};

struct result {
	const struct side *sides[SIDES];
	struct diff_options options;
	VEC(struct diff_class) classes; /* most time in both files first */
	VEC(struct doubt) doubts;
	uint32_t comparisons;
	double resolution_ns;
	double compared[SIDES];	 /* share of the time in classes whose median could be compared */
	enum verdict verdict;	 /* of all: as of the quantiles of a class */
	VEC(struct moved) moved; /* of a function those with most time */
	/* At least half of the time of A, or of B, could be compared, and nothing has moved. */
	bool is_comparable;
	bool has_regression;
};

/* Sides are borrowed. 0 or -ENOMEM; *result is then NULL. */
int result__new(struct result **result, const struct side *const sides[SIDES],
		const struct diff_options *options);
void result__free(struct result *result);

/* A class that only one side has: 0 or 1; -1: both have it. */
int class_only_in(const struct diff_class *class);

/* For doubts.c: adds one. 0 or -ENOMEM. */
int result__doubt(struct result *result, bool is_serious, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds all doubts about the two sides. 0 or -ENOMEM. */
int result__find_doubts(struct result *result);

/* "n_tokens 4 to 7", "1.02 ms to 1.31 ms of work". Writes and returns text. */
#define CLASS_LABEL_MAX 160
const char *class_label(const struct diff_class *class, char text[CLASS_LABEL_MAX]);

/* Why a quantile cannot be told: "too few steps in A", … ; "" if it can, or its interval is wide.
 */
const char *change_reason(const struct diff_class *class, int quantile);

#endif
