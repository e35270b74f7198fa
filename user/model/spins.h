/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Waits that spin: calls in a row that each come to nothing, with little code between them, are one
 * wait. Pure.
 */
#ifndef FBT_MODEL_SPINS_H
#define FBT_MODEL_SPINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/step.h"
#include "model/window.h"

/* A shorter row is none, nor is one of fewer calls. */
#define SPIN_MIN_NS    100000
#define SPIN_MIN_CALLS 3
/*
 * Code between two calls of a row: 10 us, or half of the call before it, or an eighth of the row so
 * far, but no longer than this.
 */
#define SPIN_BETWEEN_MAX_NS 1000000

/* What calls of a row may be as long as, but for sched_yield and futex. */
#define SPIN_CALL_MAX_NS 10000000

/* Whether a call of that number may be one of a row. */
bool spin_may_have(enum fbt_arch arch, uint32_t nr);

/* Whether it gives the CPU to others, which may take as long as they like. */
bool spin_yields(enum fbt_arch arch, uint32_t nr);

/*
 * What is looked for: sched_yield; poll, select and epoll_wait without a result and nanosleep, each
 * of at most 10 ms; and waits in futex for one address that timed out. Waits for the lock of a
 * CPython interpreter are none: it times out by itself.
 */
struct spin_search {
	const struct step *step; /* borrowed */
	enum fbt_arch arch;
	uint64_t gil_start; /* see fbt_python */
	uint64_t gil_end;
	size_t next;
	/* Calls that have no record: time that the sums have, and the records do not. */
	uint64_t unseen_ns[FBT_CATEGORY_COUNT];
	uint64_t delay_ns; /* of the step, outside of calls and without a CPU: what is left of it */
};

/* An interval has several threads, so none of its calls are in a row. */
void spin_search_begin(struct spin_search *search, const struct window *window,
		       const struct step *step);

/* The next wait; false: there is no more. */
bool spin_search_next(struct spin_search *search, struct spin *spin);

/* The time of the code between its calls, without that for which it had no CPU. */
uint64_t spin_code_ns(const struct spin *spin);

/* Sets step->spins. */
void spins_find(const struct window *window, struct step *step);

#endif
