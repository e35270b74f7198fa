/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * When the time of day no longer follows from the pair of clocks that was sent last: it was set, or
 * the machine has slept, which CLOCK_MONOTONIC does not count. Pure.
 */
#ifndef FBT_TRACE_WALL_CLOCK_H
#define FBT_TRACE_WALL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct wall_clock {
	uint64_t offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC, modulo 2^64, as sent */
};

/*
 * Takes a reading: CLOCK_REALTIME between two readings of CLOCK_MONOTONIC. Returns whether the pair
 * has moved by WALL_CLOCK_MOVED_NS or more and is to be sent; it counts as sent then. A reading
 * that was interrupted for long says nothing.
 */
#define WALL_CLOCK_MOVED_NS UINT64_C(100000000)
bool wall_clock_take(struct wall_clock *clock, uint64_t before_ns, uint64_t realtime_ns,
		     uint64_t after_ns);

#endif
