/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Distribution of durations in bounded memory: exact count, sum, min, max and mean; percentiles
 * exact below 1024, within 0.1 % above; 0.5 KiB, plus 4 KiB for each power of two that is hit
 * (values below 512 share one).
 */
#ifndef FBT_STATS_H
#define FBT_STATS_H

#include <stdint.h>

struct stats;

struct stats *stats__new(void); /* NULL: -ENOMEM */
void stats__free(struct stats *stats);

/* Out of memory, a value still counts in everything but the percentiles. */
void stats__add(struct stats *stats, uint64_t value);
uint64_t stats__count(const struct stats *stats);
uint64_t stats__sum(const struct stats *stats); /* saturates */
uint64_t stats__min(const struct stats *stats); /* 0 if empty, as all below */
uint64_t stats__max(const struct stats *stats);
double stats__mean(const struct stats *stats);

/* Rank round(p * (count - 1)), as the seed's bench does; p is 0 … 1. */
uint64_t stats__percentile(const struct stats *stats, double p);

/*
 * Population standard deviation over mean, in percent; NaN-free: 0 if the mean is 0. Relative error
 * below 1e-9 up to 2^32 values.
 */
double stats__cv_percent(const struct stats *stats);

#endif
