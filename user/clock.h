/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#ifndef FBT_CLOCK_H
#define FBT_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock; CLOCK_MONOTONIC is what bpf_ktime_get_ns reads. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

#endif
