/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "search/step_choice.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "steps/find.h"

#define CALLS_MIN 10

/* Of its calls, so many have an end: those in progress at either end of the measurement have none.
 */
#define ENDED_PART 0.75

/* Calls take at least this part of the CPU time that samples say is spent in them. */
#define COVERED_PART 0.6

/* Of its time, at least this part is work. */
#define WORK_PART 0.5

/*
 * Of all calls, so many last within a factor of eight, and take at least that part of the time:
 * prefills and other long ones are few, and what runs many tasks has few that are the work.
 */
#define USUAL_PART	0.6
#define USUAL_SPANS	3
#define USUAL_TIME_PART 0.2

/* Calls for CPU time in a slice: how far from the usual, in how many of the slices. */
#define STEADY_FACTOR 2.5
#define STEADY_PART   0.6
#define STEADY_SLICES 4

/* A slice in which the function worked less than this part of the mean says nothing. */
#define IDLE_PART 0.2

#define LONG_NS NS_PER_S

/* "As often", "with the same work", "notably less" time. */
#define SAME_PART 0.1
#define LESS_PART 0.8

static uint64_t sum(const uint64_t *values, size_t count)
{
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += values[i];
	return total;
}

static uint64_t cpu_ns(const struct choice *choice)
{
	return sum(choice->slice_cpu_ns, CHOICE_SLICES);
}

/* The time of the calls in a few spans, taken for as long as the middle of each. */
static double spans_ns(const uint64_t *lasted, size_t first, size_t count)
{
	double ns = 0;

	for (size_t i = first; i < first + count; i++)
		ns += (double)lasted[i] * 0.75 * (double)(1ull << (i + FBT_RATE_FIRST_BITS));
	return ns;
}

/* The largest number of calls in neighbouring spans that have a part in the work. */
static uint64_t count_usual(const struct choice *choice)
{
	double all_ns = spans_ns(choice->lasted, 0, FBT_RATE_SPANS);
	uint64_t most = 0;

	for (size_t i = 0; i + USUAL_SPANS <= FBT_RATE_SPANS; i++) {
		uint64_t calls = sum(choice->lasted + i, USUAL_SPANS);

		if (calls > most &&
		    spans_ns(choice->lasted, i, USUAL_SPANS) >= USUAL_TIME_PART * all_ns)
			most = calls;
	}
	return most;
}

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Calls are counted: a slice may have one more or less than it would have by the rate. */
static bool is_usual(uint64_t calls, double wanted)
{
	return (double)calls + 1 >= wanted / STEADY_FACTOR &&
	       (double)calls - 1 <= wanted * STEADY_FACTOR;
}

static bool is_steady(const struct choice *choice)
{
	double rates[CHOICE_SLICES], rate;
	size_t busy = 0, usual = 0;
	uint64_t idle_ns = (uint64_t)((double)cpu_ns(choice) / CHOICE_SLICES * IDLE_PART);

	for (size_t i = 0; i < CHOICE_SLICES; i++)
		if (choice->slice_cpu_ns[i] > idle_ns)
			rates[busy++] =
				(double)choice->slice_calls[i] / (double)choice->slice_cpu_ns[i];
	if (busy < STEADY_SLICES)
		return false;
	qsort(rates, busy, sizeof(*rates), compare_doubles);
	rate = rates[busy / 2];
	for (size_t i = 0; i < CHOICE_SLICES; i++)
		usual += choice->slice_cpu_ns[i] > idle_ns &&
			 is_usual(choice->slice_calls[i], rate * (double)choice->slice_cpu_ns[i]);
	return (double)usual >= STEADY_PART * (double)busy;
}

enum choice_doubt choice_doubt(const struct choice *choice)
{
	double total_ns = (double)choice->total_ns, work_ns = (double)cpu_ns(choice);
	double delay_ns = (double)choice->delay_ns;

	if (choice->waits_for_events)
		return CHOICE_EVENTS;
	if (choice->too_often)
		return CHOICE_TOO_OFTEN;
	if (!choice->calls)
		return CHOICE_NOT_CALLED;
	if (choice->calls < CALLS_MIN)
		return CHOICE_RARE;
	if ((double)choice->ended < ENDED_PART * (double)choice->calls)
		return CHOICE_ENDLESS;
	/* On a machine with other work a small function lasts long, too. */
	if (total_ns - delay_ns < (double)choice->ended * STEP_NS_MIN)
		return CHOICE_SHORT;
	if (total_ns < COVERED_PART * work_ns)
		return CHOICE_PART;
	if (work_ns < WORK_PART * (total_ns - delay_ns))
		return CHOICE_WAITS;
	if ((double)count_usual(choice) < USUAL_PART * (double)choice->ended)
		return CHOICE_UNEVEN;
	return is_steady(choice) ? CHOICE_SURE : CHOICE_UNSTEADY;
}

const char *choice_doubt_text(enum choice_doubt doubt)
{
	static const char *const texts[] = {
		[CHOICE_SURE] = "is called as a step is",
		[CHOICE_NOT_CALLED] = "is not called",
		[CHOICE_TOO_OFTEN] = "is called too often",
		[CHOICE_RARE] = "is called too seldom to tell",
		[CHOICE_ENDLESS] = "does not return, or not where it is seen",
		[CHOICE_SHORT] = "is too short",
		[CHOICE_EVENTS] = "waits for events",
		[CHOICE_PART] = "takes less time than its samples say",
		[CHOICE_WAITS] = "waits for most of its time",
		[CHOICE_UNEVEN] = "lasts for no usual time",
		[CHOICE_UNSTEADY] = "is called at no steady rate",
	};

	return texts[doubt];
}

static bool is_same(double a, double b)
{
	return a >= b * (1 - SAME_PART) && a <= b * (1 + SAME_PART);
}

/* Whether inner does the work of outer, and outer only waits around it. */
static bool waits_less(const struct choice *inner, const struct choice *outer)
{
	return is_same((double)inner->calls, (double)outer->calls) &&
	       is_same((double)cpu_ns(inner), (double)cpu_ns(outer)) &&
	       (double)inner->total_ns < LESS_PART * (double)outer->total_ns;
}

/* Whether its calls last too long for a step (STEP_NS_MIN), as one that answers a request does. */
static bool is_long(const struct choice *choice)
{
	return !choice->ended || choice->total_ns - choice->delay_ns >= choice->ended * LONG_NS;
}

/* Whether a function may be the step although it is not sure. */
static bool may_be_step(const struct choice *choice)
{
	switch (choice_doubt(choice)) {
	case CHOICE_RARE:
		return !is_long(choice);
	case CHOICE_ENDLESS:
	case CHOICE_PART:
	case CHOICE_WAITS:
	case CHOICE_UNEVEN:
	case CHOICE_UNSTEADY:
	case CHOICE_SURE:
		return true;
	case CHOICE_EVENTS:
	case CHOICE_NOT_CALLED:
	case CHOICE_TOO_OFTEN:
	case CHOICE_SHORT:
		break;
	}
	return false;
}

/* The first that may be the step, sure or not, and is not within one that is called less often. */
static size_t find_first(const struct choice *choices, size_t count, size_t *seldom)
{
	double most = INFINITY;

	*seldom = count;
	for (size_t i = 0; i < count; i++) {
		enum choice_doubt doubt = choice_doubt(&choices[i]);
		double calls = (double)choices[i].calls;

		if (doubt == CHOICE_EVENTS)
			return count;
		if (!may_be_step(&choices[i]))
			continue;
		if (calls > most * (1 + SAME_PART))
			return count;
		if (doubt == CHOICE_SURE)
			return i;
		if (doubt == CHOICE_RARE && *seldom == count)
			*seldom = i;
		most = calls < most ? calls : most;
	}
	return count;
}

size_t choice_find(const struct choice *choices, size_t count)
{
	size_t seldom, best = find_first(choices, count, &seldom);

	for (size_t i = best + 1; i < count; i++)
		if (!choice_doubt(&choices[i]) && waits_less(&choices[i], &choices[best]))
			best = i;
	return best;
}

bool choice_needs_time(const struct choice *choices, size_t count)
{
	size_t seldom;

	return find_first(choices, count, &seldom) == count && seldom < count;
}
