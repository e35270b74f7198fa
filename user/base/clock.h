/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Units of time, and the clocks. */
#ifndef FBT_BASE_CLOCK_H
#define FBT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* Nanoseconds of a clock; CLOCK_MONOTONIC is what bpf_ktime_get_ns reads. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

/* Sleeps for ns, or until a signal comes. */
static inline void clock_sleep(uint64_t ns)
{
	struct timespec time = clock_timespec(ns);

	nanosleep(&time, NULL);
}

#endif
