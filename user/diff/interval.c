/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "diff/interval.h"

#include <math.h>
#include <stdbool.h>

/* By bisection of erfc(3), to the last digits of a double. */
static double normal_upper(double p)
{
	double low = 0, high = 40;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / sqrt(2)) / 2 > p)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Abramowitz and Stegun 26.7.5. */
double student_upper(double p, double freedom)
{
	double z = normal_upper(p), v = freedom;
	double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;

	return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v) +
	       (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * v * v * v * v);
}

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_CANNOT_TELL] = "cannot_tell",
		[VERDICT_SAME] = "same",
		[VERDICT_BETTER] = "better",
		[VERDICT_WORSE] = "worse",
	};

	return names[verdict];
}

static double freedom_of(double a, uint32_t a_blocks, double b, uint32_t b_blocks)
{
	return (a + b) * (a + b) / (a * a / (a_blocks - 1) + b * b / (b_blocks - 1));
}

static enum verdict verdict_of(const struct change *change, double margin)
{
	if (change->low > 1 / (1 + margin) - 1 && change->high < margin)
		return VERDICT_SAME;
	if (change->low > 0)
		return VERDICT_WORSE;
	return change->high < 0 ? VERDICT_BETTER : VERDICT_CANNOT_TELL;
}

struct change change_find(const struct quantile *a, const struct quantile *b, double resolution_ns,
			  uint32_t comparisons, double margin)
{
	struct change change = {.ratio = NAN, .low = NAN, .high = NAN};
	double va, vb, reach = 0, center;

	if (!a->ns || !b->ns)
		return change;
	change.ratio = (double)b->ns / (double)a->ns - 1;
	if (a->state != QUANTILE_KNOWN || b->state != QUANTILE_KNOWN)
		return change;
	va = a->error * a->error;
	vb = b->error * b->error;
	if (va + vb > 0)
		reach = sqrt(va + vb) * student_upper((1 - INTERVAL_CONFIDENCE) / 2 / comparisons,
						      freedom_of(va, a->blocks, vb, b->blocks));
	center = log((double)b->ns / (double)a->ns);
	/* Both were rounded down. */
	change.low = exp(center - reach - log1p(resolution_ns / (double)a->ns)) - 1;
	change.high = exp(center + reach + log1p(resolution_ns / (double)b->ns)) - 1;
	change.verdict = verdict_of(&change, margin);
	return change;
}
