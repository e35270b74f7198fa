/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which of the functions that a busy thread is always in is the step: what was measured of each
 * decides. Pure. Better none than a wrong one.
 */
#ifndef FBT_TRACE_STEP_CHOICE_H
#define FBT_TRACE_STEP_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_shared.h"

/* The time of the measurement is cut into so many slices. */
#define CHOICE_SLICES 8

/* What was measured of a function. */
struct choice {
	uint64_t calls; /* outermost ones, if it calls itself */
	uint64_t ended; /* those whose begin and end were seen */
	uint64_t total_ns;
	uint64_t delay_ns; /* of that, waiting for a CPU */
	bool too_often;	   /* so often that it was not measured to the end */
	/* It calls epoll_wait, poll, select or accept, or is called by what does. */
	bool waits_for_events;
	uint64_t lasted[FBT_RATE_SPANS]; /* calls by duration without delay_ns (struct fbt_rate) */
	uint64_t slice_calls[CHOICE_SLICES];
	uint64_t slice_cpu_ns[CHOICE_SLICES]; /* in the function, by the samples */
};

/* Why a function is not taken for the step, in the order in which it is looked at. */
enum choice_doubt {
	CHOICE_SURE = 0,
	CHOICE_EVENTS,	   /* a server's loop, or what handles a request in it */
	CHOICE_NOT_CALLED, /* it is a loop, or an outer function */
	CHOICE_TOO_OFTEN,
	CHOICE_RARE,	/* too few calls to tell */
	CHOICE_ENDLESS, /* many calls had no end */
	CHOICE_SHORT,
	CHOICE_PART,	 /* its calls take less than what the samples say */
	CHOICE_WAITS,	 /* it waits for most of its time */
	CHOICE_UNEVEN,	 /* calls are of no usual length */
	CHOICE_UNSTEADY, /* the rate changes */
};

enum choice_doubt choice_doubt(const struct choice *choice);

/* "is not called", … */
const char *choice_doubt_text(enum choice_doubt doubt);

/*
 * The index of the step among functions that call each other, the outermost first; or count, if it
 * cannot be told. It is the outermost one that is sure. But
 * - where one that it calls, as often and with the same work, waits notably less, that one: the
 *   outer one waits for what to do;
 * - none within one that waits for events: that calls what handles requests;
 * - none that is called more often than a function around it which may be the step, but is not
 *   sure: it would be a part of that.
 */
size_t choice_find(const struct choice *choices, size_t count);

/* Whether there is no step because a function was called too seldom: a longer look would tell. */
bool choice_needs_time(const struct choice *choices, size_t count);

#endif
