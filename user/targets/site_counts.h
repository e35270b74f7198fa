/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether the probes that end steps are worth it, by who has passed them. Pure. */
#ifndef FBT_TRACE_SITE_COUNTS_H
#define FBT_TRACE_SITE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* How often is looked: in each turn of the loop, and once a second. */
#define SITE_TURN_NS (10 * NS_PER_MS)
#define SITE_LOOK_NS NS_PER_S

/* Hits of the call sites of a kind, or of exits that others pass too, in some time. */
struct passed {
	uint64_t steps;	    /* where its steps have ended */
	uint64_t strangers; /* all others */
};

/*
 * Whether others pass the call sites so often that these cost more than the exits: in more than a
 * tenth of the steps, unless it is seldom.
 */
bool sites_are_too_busy(const struct passed *passed, uint64_t time_ns);

/* Whether its call sites have ended enough steps, in a look, to do without the exits. */
bool sites_have_proved(const struct passed *passed);

/*
 * Whether followed exits, for which there is nothing else, cost too much: others pass them more
 * often than its own steps, and that takes more than a twentieth of a thread's time, or a tenth in
 * a short time.
 */
bool exits_are_too_busy(const struct passed *passed, uint64_t time_ns);

#endif
