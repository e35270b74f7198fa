/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sets of time: intervals [start_ns, end_ns) by start, none touching the next. Pure. Whatever times
 * come in, nothing wraps around: lengths saturate, an interval that ends before it begins is empty.
 */
#ifndef FBT_GPU_INTERVAL_H
#define FBT_GPU_INTERVAL_H

#include <stdint.h>
#include "gpu_step.h"

static inline uint64_t gpu_ns_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t gpu_ns_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t gpu_ns_clamp(uint64_t ns, uint64_t low, uint64_t high)
{
	return gpu_ns_min(gpu_ns_max(ns, low), high);
}

static inline uint64_t gpu_ns_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t gpu_ns_since(uint64_t end_ns, uint64_t start_ns)
{
	return end_ns > start_ns ? end_ns - start_ns : 0;
}

static inline uint64_t gpu_interval_ns(struct gpu_interval interval)
{
	return gpu_ns_since(interval.end_ns, interval.start_ns);
}

/* What of an interval is inside of another; of length 0 if nothing is. */
static inline struct gpu_interval gpu_interval_clip(struct gpu_interval interval,
						    struct gpu_interval bounds)
{
	return (struct gpu_interval){gpu_ns_max(interval.start_ns, bounds.start_ns),
				     gpu_ns_min(interval.end_ns, bounds.end_ns)};
}

/*
 * Adds an interval that begins no earlier than the last one of the set (of one that does, what lies
 * before that one's end is left out). 0 or -ENOMEM.
 */
int gpu_interval_append(gpu_interval_vec *set, struct gpu_interval interval);

/* Makes a set of intervals in any order, which may overlap. */
void gpu_interval_sort(gpu_interval_vec *set);

uint64_t gpu_interval_length(const gpu_interval_vec *set);

/* Length of what is in both. */
uint64_t gpu_interval_common(const gpu_interval_vec *a, const gpu_interval_vec *b);

/*
 * Length of what is in the set and in the interval. *next (0 at first) is where to look from:
 * intervals are asked for by start.
 */
uint64_t gpu_interval_common_with(const gpu_interval_vec *set, size_t *next,
				  struct gpu_interval interval);

/* To result, which is empty before: what is in either, in both, in a alone. 0 or -ENOMEM. */
int gpu_interval_unite(const gpu_interval_vec *a, const gpu_interval_vec *b,
		       gpu_interval_vec *result);
int gpu_interval_intersect(const gpu_interval_vec *a, const gpu_interval_vec *b,
			   gpu_interval_vec *result);
int gpu_interval_subtract(const gpu_interval_vec *a, const gpu_interval_vec *b,
			  gpu_interval_vec *result);

#endif
