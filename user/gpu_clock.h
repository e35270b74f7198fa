/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Times of CUPTI's clock to CLOCK_MONOTONIC of the initial time namespace, which is what the kernel
 * side stamps. Pure. Between two samples the offset is interpolated, before the first and behind
 * the last it is that of the nearest; across a step it is that of one side.
 */
#ifndef FBT_GPU_CLOCK_H
#define FBT_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"

/* Samples that are kept: records are older than the oldest of them only if they are very late. */
#define GPU_CLOCK_SAMPLES 64
/* An offset that changes by more between two samples (and 0.1 % of the time) is a step, no drift.
 */
#define GPU_CLOCK_STEP_NS 1000000ull

struct gpu_clock {
	int64_t timens_ns; /* CLOCK_MONOTONIC of the target minus ours; 0 without time namespace */
	struct fbt_gpu_clock samples[GPU_CLOCK_SAMPLES]; /* a ring, by gpu_ns */
	uint32_t first;
	uint32_t count;
	uint32_t method;   /* of the latest sample */
	uint64_t error_ns; /* the largest there was: half a sandwich, or what a step left open */
	uint64_t steps;
};

/*
 * Takes a sample, which the target may have made up: what cannot be (mono_ns before that of an
 * earlier sample of the same method, or in the far future of now_ns) is not taken: false. A new
 * method throws the old samples away, and so does a clock that was set back.
 */
bool gpu_clock_add(struct gpu_clock *clock, const struct fbt_gpu_clock *sample, uint64_t now_ns);

/* 0 stays 0. Without a sample, and by callback, only timens_ns is taken off. Saturates at 1. */
uint64_t gpu_clock_convert(const struct gpu_clock *clock, uint64_t time_ns);

#endif
