/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace_out.h"

#include <errno.h>

#include "clock.h"

#define NS_PER_S 1000000000ull

/* Of a write that failed since errno was cleared: stdio only remembers that one did. */
static int output_error(void)
{
	return errno ? -errno : -EIO;
}

int trace_out_flush(struct trace_out *out)
{
	return fflush(out->file) || ferror(out->file) ? output_error() : 0;
}

int trace_out_check(struct trace_out *out)
{
	uint64_t now_ns;

	if (ferror(out->file))
		return output_error();
	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (now_ns - out->flushed_ns < NS_PER_S)
		return 0;
	out->flushed_ns = now_ns;
	return trace_out_flush(out);
}
