/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the probes of one step function may cost, as a state machine: times in, decisions out, and
 * nothing else. A trap costs 0.5 to 20 us whatever a program behind it does, so a function that is
 * called all the time is not to be probed all the time.
 *
 * Cost is time of one CPU, of the one where it is worst. It may be a share of the time of the
 * threads that call the function, and a burst beyond it. Waits for a CPU are not in that time: of
 * a thread that gets little of a busy machine, the little is not to be spent on probes. Above it
 * the probes are switched off, and on again for a slice in each period, which ends once it has cost
 * RATE_SAMPLE_SHARE of the period, so that this is what they cost from then on. Where a slice is
 * long and the share is kept in it, they stay on.
 */
#ifndef FBT_RATE_GUARD_H
#define FBT_RATE_GUARD_H

#include <stdint.h>

/* Of the time, in slices; share if that is less. */
#define RATE_SAMPLE_SHARE 0.01
/* What may be spent at once: that of 25,000 steps where a step's two probes take 2 us. */
#define RATE_BURST_NS 50000000ull

enum rate_state {
	RATE_WATCHED, /* on */
	RATE_OFF,
	RATE_SLICE, /* on for a moment */
};

enum rate_verdict {
	RATE_STAY,
	RATE_SWITCH_OFF,
	RATE_SWITCH_ON,
	RATE_KEEP_ON, /* the slice that is open has no end */
};

struct rate_limits {
	double share;	    /* above 0 */
	uint64_t period_ns; /* from the begin of a slice to that of the next, if not longer */
};

struct rate_guard {
	enum rate_state state;
	int64_t credit_ns; /* RATE_WATCHED: what may be spent now */
	uint64_t begin_ns; /* of the slice that is open, or was last; of the first time off */
	uint64_t spent_ns; /* since then */
	uint64_t own_ns;
};

/* The probes have been switched on for the first time. */
void rate_guard_begin(struct rate_guard *guard, uint64_t now_ns);

/*
 * spent_ns, own_ns: cost, and time of the threads, since the last look, on the CPU where the
 * one exceeds its share of the other most. The caller does what the verdict says before the next
 * look; what that costs is spent too.
 */
enum rate_verdict rate_guard_look(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns, uint64_t spent_ns, uint64_t own_ns);

#endif
