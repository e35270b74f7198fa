/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/site_counts.h"

/* With fewer steps in a look, the probes on the exits cost nothing worth the change. */
#define STEPS_MIN 100
/* Others that pass a site, in a look and in a turn. Fewer cost nothing. */
#define STRANGERS_MIN	   1000
#define STRANGERS_MIN_TURN 100
/* More than a tenth of the steps: they cost more than the exits. */
#define STRANGERS_PART 10
/* The same of exits: each hit takes some 10 us. Turns may be late. */
#define HITS_MIN      5000
#define HITS_MIN_TURN 100

static bool are_many(const struct passed *passed)
{
	return passed->strangers > passed->steps / STRANGERS_PART;
}

bool sites_are_too_busy(const struct passed *passed, uint64_t time_ns)
{
	return passed->strangers >= (time_ns < SITE_LOOK_NS ? STRANGERS_MIN_TURN : STRANGERS_MIN) &&
	       are_many(passed);
}

bool sites_have_proved(const struct passed *passed)
{
	return passed->steps >= STEPS_MIN && !are_many(passed);
}

bool exits_are_too_busy(const struct passed *passed, uint64_t time_ns)
{
	uint64_t turns = time_ns / SITE_TURN_NS + 1;
	uint64_t min = turns * HITS_MIN_TURN;

	if (time_ns >= SITE_LOOK_NS)
		min = HITS_MIN * (time_ns / SITE_LOOK_NS);
	return passed->strangers >= min && passed->strangers > passed->steps;
}
