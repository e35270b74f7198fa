/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What step probes may cost, as a state machine: times in, decisions out, and nothing else. A trap
 * costs 0.5 to 20 us whatever a program behind it does, so a function that is called all the time
 * is not to be probed all the time.
 *
 * Cost is time of one CPU, of the one where it is worst. All functions together may cost a share of
 * the time of the threads that call them, and a burst beyond it. Waits for a CPU are not in that
 * time: of a thread that gets little of a busy machine, the little is not to be spent on probes.
 * Above it the probes of the function that costs most are switched off, and on again for a slice in
 * each period, which ends once it has cost RATE_SAMPLE_SHARE of the period, so that this is what
 * they cost from then on; the others have what is left of the share. Where a slice is long and the
 * share is kept in it, they stay on.
 */
#ifndef FBT_RATE_GUARD_H
#define FBT_RATE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Of the time, in slices of one function; all of them have half of the share at most. */
#define RATE_SAMPLE_SHARE 0.01
/* What may be spent at once: that of 2,500 steps where a step's two probes take 20 us. */
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
	double share;	      /* above 0; of all functions together */
	uint64_t period_ns;   /* from the begin of a slice to that of the next, if not longer */
	unsigned int sampled; /* functions that are not RATE_WATCHED */
};

/* Of all functions that are RATE_WATCHED. */
struct rate_budget {
	int64_t credit_ns; /* what may be spent now */
};

/* Of one function. */
struct rate_guard {
	enum rate_state state;
	double lately_ns;  /* spent in the last second or so, where the budget was looked at */
	uint64_t begin_ns; /* of the slice that is open, or was last; of the first time off */
	uint64_t spent_ns; /* since then */
	uint64_t beside_ns;
	uint64_t own_ns;
};

/* Cost, and time of the threads, since the last look, on one CPU. */
struct rate_cost {
	uint64_t spent_ns;
	uint64_t own_ns;
	uint64_t beside_ns; /* spent there too: by functions that are RATE_WATCHED */
};

/* The share of those that are RATE_WATCHED. */
double rate_watched_share(const struct rate_limits *limits);

void rate_budget_begin(struct rate_budget *budget);

/*
 * cost: of all functions that are RATE_WATCHED, on the CPU where it exceeds their share most. True:
 * the one that has spent most lately is to go, by rate_guard_let_go.
 */
bool rate_budget_look(struct rate_budget *budget, const struct rate_limits *limits,
		      const struct rate_cost *cost);

/* The probes have been switched on for the first time. */
void rate_guard_begin(struct rate_guard *guard, uint64_t now_ns);

/* RATE_WATCHED only: what it has spent in time_ns, on the CPU that the budget was looked at. */
void rate_guard_spend(struct rate_guard *guard, uint64_t time_ns, uint64_t spent_ns);

/* RATE_WATCHED only: its probes are to be switched off before the next look. */
void rate_guard_let_go(struct rate_guard *guard, uint64_t now_ns);

/*
 * cost: on the CPU where that of this function exceeds its share most. The caller does what the
 * verdict says before the next look; what that costs is spent too. One that is RATE_WATCHED stays.
 */
enum rate_verdict rate_guard_look(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns, const struct rate_cost *cost);

#endif
