/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/wall_clock.h"

#include "base/clock.h"

/* A reading may take so long. */
#define READING_NS NS_PER_MS

bool wall_clock_take(struct wall_clock *clock, uint64_t before_ns, uint64_t realtime_ns,
		     uint64_t after_ns)
{
	uint64_t offset_ns = realtime_ns - before_ns;
	uint64_t moved_ns = offset_ns - clock->offset_ns;

	if (after_ns - before_ns > READING_NS)
		return false;
	if ((int64_t)moved_ns < 0)
		moved_ns = -moved_ns;
	if (moved_ns < WALL_CLOCK_MOVED_NS)
		return false;
	clock->offset_ns = offset_ns;
	return true;
}
