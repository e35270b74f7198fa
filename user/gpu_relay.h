/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Records as a shim wrote them to records of the stream: whose they are, and our clock. */
#ifndef FBT_GPU_RELAY_H
#define FBT_GPU_RELAY_H

#include <stdint.h>
#include "gpu_clock.h"
#include "gpu_tids.h"
#include "record.h"

/*
 * Of flushes that come faster than this all but the first are kept back: each is work for whoever
 * waits for one, and a later one says what they did. A shim makes four in a second.
 */
#define GPU_RELAY_FLUSH_NS 50000000ull

struct gpu_relay {
	uint32_t tgid;
	const struct record_output *output;
	struct gpu_clock clock;
	struct gpu_tids *tids;
	struct fbt_gpu_flush flush; /* the latest that came; size 0: none did */
	uint64_t flush_ns;	    /* when one was sent last */
	uint64_t impossible;	    /* records that were not sent: their times have not come yet */
};

/*
 * Converts a checked record (gpu_ring__read), in its place, and sends it; a clock sample is kept
 * instead, a state is the caller's. skipped: records of the ring that were not sound, which are
 * told of with the next flush.
 */
void gpu_relay_record(struct gpu_relay *relay, struct fbt_header *record, uint64_t skipped,
		      uint64_t now_ns);

/* Tells that nothing comes any more, where the shim did not: a last flush of the time of its
 * latest. */
void gpu_relay_end(struct gpu_relay *relay, uint64_t skipped, uint64_t now_ns);

/* CLOCK_MONOTONIC of the process to ours; not behind now_ns. */
uint64_t gpu_relay_mono(const struct gpu_relay *relay, uint64_t mono_ns, uint64_t now_ns);

#endif
