/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * From two quantiles to a verdict. Pure.
 *
 * The change is B / A - 1. Its interval is that of a Student distribution around the difference of
 * the logarithms, with the errors of both sides and Welch's degrees of freedom. The verdict:
 *
 *   worse        the interval is above 0, and not within the margin
 *   better       the interval is below 0, and not within the margin
 *   same         the interval is within the margin on both sides
 *   cannot tell  neither; or too few steps
 *
 * With several comparisons each interval is so wide that all of them hold at once with the
 * probability that is asked for (Bonferroni).
 */
#ifndef FBT_DIFF_INTERVAL_H
#define FBT_DIFF_INTERVAL_H

#include <stdint.h>
#include "diff/quantile.h"

/* All intervals together hold with that probability. */
#define INTERVAL_CONFIDENCE 0.95

enum verdict {
	VERDICT_CANNOT_TELL = 0,
	VERDICT_SAME,
	VERDICT_BETTER,
	VERDICT_WORSE,
};

struct change {
	enum verdict verdict;
	double ratio; /* B / A - 1; NaN if A or B is not known */
	double low;   /* of its interval; NaN if that is not known */
	double high;
};

/*
 * The change from a to b, one of comparisons (at least 1) that are made. Values are
 * rounded down to multiples of the resolution (of profiles 1000 ns), by which the interval is wider
 * at both ends. margin
 * is a share, above 0: within 1 / (1 + margin) and 1 + margin B is as fast as A.
 */
struct change change_find(const struct quantile *a, const struct quantile *b, double resolution_ns,
			  uint32_t comparisons, double margin);

/* "same", "better", "worse", "cannot_tell". */
const char *verdict_name(enum verdict verdict);

/* The value that a Student variable exceeds with probability p, 0 < p < 0.5; freedom at least 10.
 */
double student_upper(double p, double freedom);

#endif
