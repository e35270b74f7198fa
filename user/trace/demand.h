/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * When to look at what only explains slow steps: after the first step that it would explain, if all
 * of the machine can afford it, and until no step has needed it for a while. Pure: no clock.
 *
 *	UNUSED or OFF --want--> (the rate is measured) --> ARMED, or REFUSED
 *	ARMED --unwanted for idle_ns--> OFF; --too dear in two looks--> REFUSED
 *	REFUSED --want, idle_ns later--> (the rate is measured again)
 */
#ifndef FBT_TRACE_DEMAND_H
#define FBT_TRACE_DEMAND_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_explain.h"

/* For how long a rate is measured before its price is known, and while it is armed. */
#define DEMAND_RATE_NS 200000000ull
#define DEMAND_LOOK_NS 1000000000ull

struct demand_limits {
	uint64_t limit_ppm; /* 0: none */
	uint64_t idle_ns;
	uint64_t event_ps; /* what one event costs */
	uint32_t cpus;
};

struct demand {
	enum fbt_explain_state state;
	bool wanted;	      /* since it was off, or refused */
	bool has_rate;	      /* look_ns and look_events are the begin of a measurement */
	bool was_dear;	      /* at the last look while armed */
	uint64_t missed;      /* see fbt_explained */
	uint64_t wanted_ns;   /* when it was last */
	uint64_t refused_ns;  /* when it was last */
	uint64_t look_ns;     /* the begin of a measurement */
	uint64_t look_events; /* … what the counter said then */
	uint64_t armed_ns;    /* in total */
	uint64_t events;      /* while armed, in total */
	uint64_t price_ppm;   /* as measured last */
};

enum demand_act {
	DEMAND_NOTHING = 0,
	DEMAND_ARM,
	DEMAND_DISARM,	/* no longer needed */
	DEMAND_REFUSE,	/* too dear; it was not armed */
	DEMAND_GIVE_UP, /* too dear, while it was armed: disarm */
};

/* A step was slow for a reason that this explains. is_explained: it had been looked at. */
void demand_want(struct demand *demand, bool is_explained, uint64_t now_ns);

/* Whether demand_turn needs the present value of the counter of events, which takes long to read.
 */
bool demand_needs_count(const struct demand *demand, const struct demand_limits *limits,
			uint64_t now_ns);

/*
 * To be called every few ms. events: the counter, if it is needed. The state changes as the result
 * says; a caller that cannot arm calls demand_fail.
 */
enum demand_act demand_turn(struct demand *demand, const struct demand_limits *limits,
			    uint64_t now_ns, uint64_t events);

/* It is not possible: never again. */
void demand_fail(struct demand *demand);

/* It is armed from the beginning. */
void demand_arm(struct demand *demand, uint64_t now_ns, uint64_t events);

/* The window ends: adds the last stretch. */
void demand_finish(struct demand *demand, uint64_t now_ns, uint64_t events);

#endif
