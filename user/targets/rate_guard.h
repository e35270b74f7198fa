/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What step probes may cost, as a state machine: times in, decisions out. A trap costs 0.5 to 20 us
 * whatever program it runs, so a function that is called all the time must not be probed all the
 * time.
 *
 * All step functions together may cost a share of each CPU's time and of each thread's time, plus a
 * burst. Time in which a thread waits for a CPU does not count as its time: on a busy machine, a
 * thread that runs little must not spend it on probes. The kernel side accounts for each thread
 * (struct fbt_hits). What exceeds share and burst is excess, even if other threads do not use
 * theirs.
 *
 * Above the limit, the probes of the most expensive function are switched off, and switched on
 * again for a slice in each period. A slice ends when it has cost RATE_SAMPLE_SHARE of the period,
 * so that is what the function costs from then on. The other functions have the rest of the share.
 * Probes that stay within the share during a long slice remain on.
 */
#ifndef FBT_TRACE_RATE_GUARD_H
#define FBT_TRACE_RATE_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/clock.h"

/*
 * Share of time for the slices of one function. The slices of all functions have at most half of
 * the whole share.
 */
#define RATE_SAMPLE_SHARE 0.01
/* What may be spent at once: 2,500 steps if a step's two probes take 20 us. */
#define RATE_BURST_NS 50000000ull
/*
 * Excess that is tolerated in about a second. A function may cause excess in another function's
 * thread.
 */
#define RATE_EXCESS_NS NS_PER_MS

enum rate_state {
	RATE_WATCHED, /* on */
	RATE_OFF,
	RATE_SLICE, /* on for one slice */
};

enum rate_verdict {
	RATE_STAY,
	RATE_SWITCH_OFF,
	RATE_SWITCH_ON,
	RATE_KEEP_ON, /* leave on: the function is no longer sampled */
};

struct rate_limits {
	double share;	      /* above 0; for all functions together */
	uint64_t period_ns;   /* from the start of a slice to the start of the next, or more */
	unsigned int sampled; /* number of functions that are not RATE_WATCHED */
};

/* The state of one function. */
struct rate_guard {
	enum rate_state state;
	double lately_ns; /* spent in about the last second, on the CPU where that is most */
	double over_ns;	  /* excess in about the last second */
	/*
	 * Start of the open slice or the last one; before the first slice: when it was switched
	 * off.
	 */
	uint64_t begin_ns;
	uint64_t spent_ns; /* since begin_ns, as are the next two */
	uint64_t beside_ns;
	uint64_t excess_ns;
};

/* What a function has cost since the last look. */
struct rate_cost {
	uint64_t spent_ns;  /* on the CPU where that is most */
	uint64_t beside_ns; /* on the same CPU, by functions that are RATE_WATCHED */
	uint64_t excess_ns; /* in all threads */
};

/* The share for all functions that are RATE_WATCHED. */
double rate_watched_share(const struct rate_limits *limits);

/*
 * Checks the budget of one CPU. credit_ns: what all functions that are RATE_WATCHED may spend on it
 * now; initially RATE_BURST_NS. spent_ns: what they have spent since the last look, time_ns ago.
 * true: the budget is exceeded; call rate_guard_let_go for the function that has spent most lately.
 */
bool rate_budget_look(int64_t *credit_ns, const struct rate_limits *limits, uint64_t time_ns,
		      uint64_t spent_ns);

/* The probes have been switched on for the first time. */
void rate_guard_begin(struct rate_guard *guard, uint64_t now_ns);

/* RATE_WATCHED only: adds what the function has cost in time_ns. */
void rate_guard_spend(struct rate_guard *guard, uint64_t time_ns, const struct rate_cost *cost);

/*
 * RATE_WATCHED only: whether the function costs a thread too much. Of several, the one with the
 * largest over_ns must be switched off.
 */
bool rate_guard_is_over(const struct rate_guard *guard);

/* Forgets the function's excess, which another function may have caused. */
void rate_guard_forgive(struct rate_guard *guard);

/* RATE_WATCHED only: the caller switches the function's probes off before the next look. */
void rate_guard_let_go(struct rate_guard *guard, uint64_t now_ns);

/*
 * What to do with the function's probes. The caller does it before the next look; the cost of doing
 * it counts as spent. A function that is RATE_WATCHED stays.
 */
enum rate_verdict rate_guard_look(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns, const struct rate_cost *cost);

#endif
