/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What step probes may cost, as a state machine: times in, decisions out, and nothing else. A trap
 * costs 0.5 to 20 us whatever a program behind it does, so a function that is called all the time
 * is not to be probed all the time.
 *
 * All functions together may cost a share of each CPU's time and of each thread's, and a burst
 * beyond it. Waits for a CPU are no time of the thread: of one that gets little of a busy machine,
 * the little is not to be spent on probes. Threads are accounted for one by one, by the kernel side
 * (struct fbt_hits): what one costs beyond share and burst is excess, whatever others leave.
 *
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
/* Excess of the last second or so that is let be: one function's may reach another's thread. */
#define RATE_EXCESS_NS 1000000ull

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

/* Of all functions that are RATE_WATCHED, on one CPU. */
struct rate_budget {
	int64_t credit_ns; /* what may be spent now */
};

/* Of one function. */
struct rate_guard {
	enum rate_state state;
	double lately_ns;  /* spent in the last second or so, on the CPU where that is most */
	double over_ns;	   /* and excess */
	uint64_t begin_ns; /* of the slice that is open, or was last; of the first time off */
	uint64_t spent_ns; /* since then, as are these */
	uint64_t beside_ns;
	uint64_t excess_ns;
};

/* Since the last look. */
struct rate_cost {
	uint64_t spent_ns;  /* on the CPU where that is most */
	uint64_t beside_ns; /* there too: by functions that are RATE_WATCHED */
	uint64_t excess_ns; /* in all threads */
};

/* The share of those that are RATE_WATCHED. */
double rate_watched_share(const struct rate_limits *limits);

void rate_budget_begin(struct rate_budget *budget);

/*
 * spent_ns: since the last look, which was time_ns ago, on that CPU by all functions that are
 * RATE_WATCHED. True: the one that has spent most lately is to go, by rate_guard_let_go.
 */
bool rate_budget_look(struct rate_budget *budget, const struct rate_limits *limits,
		      uint64_t time_ns, uint64_t spent_ns);

/* The probes have been switched on for the first time. */
void rate_guard_begin(struct rate_guard *guard, uint64_t now_ns);

/* RATE_WATCHED only: what it has cost in time_ns. */
void rate_guard_spend(struct rate_guard *guard, uint64_t time_ns, const struct rate_cost *cost);

/* RATE_WATCHED only: it costs a thread too much. Of those that do, the one with most over_ns is to
 * go. */
bool rate_guard_is_over(const struct rate_guard *guard);

/* What others have left in its threads until now is not held against it. */
void rate_guard_forgive(struct rate_guard *guard);

/* RATE_WATCHED only: its probes are to be switched off before the next look. */
void rate_guard_let_go(struct rate_guard *guard, uint64_t now_ns);

/*
 * The caller does what the verdict says before the next look; what that costs is spent too. One
 * that is RATE_WATCHED stays.
 */
enum rate_verdict rate_guard_look(struct rate_guard *guard, const struct rate_limits *limits,
				  uint64_t now_ns, const struct rate_cost *cost);

#endif
