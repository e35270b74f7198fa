/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Durations in exponential buckets, as OpenTelemetry's exponential histograms and Prometheus'
 * native ones have them: at scale 3, eight to a doubling, so a quantile is at most 9 % off. Bucket
 * i holds what is above 2^(i / 8 - 20) s and at most 2^((i + 1) / 8 - 20) s. Classic buckets are
 * every fourth bound of these (scale 1), so both forms have the same counts. Pure.
 */
#ifndef FBT_METRICS_HISTOGRAM_H
#define FBT_METRICS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SCALE	  3
#define HISTOGRAM_MIN_EXP (-20) /* 0.95 us: what is at most this is in below */
#define HISTOGRAM_MAX_EXP 13	/* 2.3 h: what is above is in the last bucket */
#define HISTOGRAM_PER_EXP (1 << HISTOGRAM_SCALE)
#define HISTOGRAM_BUCKETS ((HISTOGRAM_MAX_EXP - HISTOGRAM_MIN_EXP) * HISTOGRAM_PER_EXP)
/* The index of bucket 0 as OpenTelemetry counts: its lower bound is 2^(index / 8). */
#define HISTOGRAM_OFFSET (HISTOGRAM_MIN_EXP * HISTOGRAM_PER_EXP)

/* Classic buckets: 61 us to 128 s, two to a doubling. */
#define CLASSIC_MIN_EXP (-14)
#define CLASSIC_MAX_EXP 7
#define CLASSIC_BUCKETS ((CLASSIC_MAX_EXP - CLASSIC_MIN_EXP) * 2 + 1)

/* The largest duration of each bucket, in ns; that of the last one is UINT64_MAX. */
struct histogram_bounds {
	uint64_t ns[HISTOGRAM_BUCKETS];
};
void histogram_bounds_init(struct histogram_bounds *bounds);

/* All zero: empty. */
struct histogram {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t below; /* at most 2^HISTOGRAM_MIN_EXP s */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, const struct histogram_bounds *bounds, uint64_t ns);

/* The upper bound of a classic bucket in seconds. */
double classic_bound(int bucket);

/* How many durations are at most that bound. */
uint64_t classic_count(const struct histogram *histogram, int bucket);

#endif
