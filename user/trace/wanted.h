/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Threads that are looked at one by one, as their steps were slow: few, since each costs. Pure:
 * no clock.
 */
#ifndef FBT_TRACE_WANTED_H
#define FBT_TRACE_WANTED_H

#include <stdbool.h>
#include <stdint.h>

#define WANTED_MAX 4
/*
 * For so long a thread that lives keeps its place. Where more threads are slow than there are
 * places, each would otherwise have lost its own before its next slow step.
 */
#define WANTED_KEEP_NS 5000000000ull

/* All zero: empty. */
struct wanted {
	struct wanted_thread {
		uint32_t tid;
		bool has_ended;
		uint64_t since_ns;
	} threads[WANTED_MAX]; /* in the order in which they came */
	uint32_t count;
};

bool wanted_has(const struct wanted *wanted, uint32_t tid);

/*
 * Gives a thread a place: a free one, that of one that has ended, or that of the oldest if that one
 * has had it for WANTED_KEEP_NS. False if it has one already, or there is none. *dropped: the
 * thread that had the place; 0: it was free.
 */
bool wanted_add(struct wanted *wanted, uint32_t tid, uint64_t now_ns, uint32_t *dropped);

/*
 * Drops a thread that had ended by the call before, and returns it; 0: there is none. What it did
 * last is read between two calls. To be called until it returns 0, with the same lives, every few
 * ms.
 */
uint32_t wanted_drop_ended(struct wanted *wanted, bool (*lives)(void *ctx, uint32_t tid),
			   void *ctx);

#endif
