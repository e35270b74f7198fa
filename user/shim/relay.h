/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Turns the records of a shim into records of the stream: fills in tgid and the tid of the initial
 * PID namespace, and converts CUPTI's times to CLOCK_MONOTONIC of the initial time namespace, which
 * the BPF programs use. Between two clock samples the offset is interpolated. Before the first and
 * after the last sample, its offset is used. Across a clock step, the offset of one side is used.
 */
#ifndef FBT_SHIM_RELAY_H
#define FBT_SHIM_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/clock.h"
#include "fbt_gpu.h"
#include "model/event.h"
#include "proc/namespace.h"

/* Number of samples kept. Only very late records are older than all of them. */
#define GPU_CLOCK_SAMPLES 64
/*
 * If the offset changes by more than this plus 0.1 % of the time between two samples, the clock has
 * stepped; less is drift.
 */
#define GPU_CLOCK_STEP_NS NS_PER_MS

struct gpu_clock {
	/* CLOCK_MONOTONIC of the target minus ours; 0 without a time namespace */
	int64_t timens_ns;
	struct fbt_gpu_clock samples[GPU_CLOCK_SAMPLES]; /* a ring, by gpu_ns */
	uint32_t first;
	uint32_t count;
	uint32_t method;   /* of the latest sample */
	uint64_t error_ns; /* the largest so far: a sample's own, or the uncertainty of a step */
	uint64_t steps;
};

/*
 * Adds a sample, which the target may have made up. false: the sample is impossible and was
 * dropped, because mono_ns is before that of an earlier sample of the same method or far after
 * now_ns. A sample of a new method drops the old samples, as does a clock that was set back.
 */
bool gpu_clock_add(struct gpu_clock *clock, const struct fbt_gpu_clock *sample, uint64_t now_ns);

/*
 * Converts a time. 0 stays 0; other results are at least 1. Without samples, and with
 * FBT_GPU_CLOCK_CALLBACK, only timens_ns is subtracted.
 */
uint64_t gpu_clock_convert(const struct gpu_clock *clock, uint64_t time_ns);

/*
 * A flush that follows another within this time is not sent, since each causes work downstream; a
 * later one covers it. A shim sends four a second.
 */
#define GPU_RELAY_FLUSH_NS 50000000ull

struct gpu_relay {
	uint32_t tgid;
	const struct record_output *output;
	struct gpu_clock clock;
	struct ns_tids *tids;
	struct fbt_gpu_flush flush; /* the latest one received; size 0: none */
	uint64_t flush_ns;	    /* when the last one was sent */
	uint64_t impossible;	    /* records dropped because their times lie in the future */
};

/* The shim is armed: its totals begin anew. Clock samples stay. */
void gpu_relay_begin(struct gpu_relay *relay);

/*
 * Converts a record that gpu_ring__read has checked, in place, and sends it. Clock samples are
 * stored instead. Status records (FBT_EVENT_GPU_STATE) are left to the caller. skipped:
 * gpu_ring__skipped, reported with the next flush.
 */
void gpu_relay_record(struct gpu_relay *relay, struct fbt_header *record, uint64_t skipped,
		      uint64_t now_ns);

/* Sends a last flush with the time of the latest one, unless the shim has sent a last flush. */
void gpu_relay_end(struct gpu_relay *relay, uint64_t skipped, uint64_t now_ns);

/* Converts CLOCK_MONOTONIC of the process to ours; at most now_ns. */
uint64_t gpu_relay_mono(const struct gpu_relay *relay, uint64_t mono_ns, uint64_t now_ns);

#endif
