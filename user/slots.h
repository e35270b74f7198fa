/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Slots of traced threads: taken for threads that were there already, read, added up, given back.
 */
#ifndef FBT_SLOTS_H
#define FBT_SLOTS_H

#include <stdbool.h>
#include "shared.h"

/* Sums of one process: what its ended threads left, and what a snapshot adds for the living. */
struct process_sums {
	struct fbt_sum rows[FBT_NR_COUNT];
	uint64_t unfinished[FBT_NR_COUNT]; /* calls that have not returned */
	uint64_t open_ns[FBT_NR_COUNT];	   /* how long those have lasted; not in rows */
	uint64_t thread_ns;		   /* time its threads have existed under trace */
	uint32_t threads;		   /* living */
};

/* Puts all slots but 0 on the free list. Before anything is attached. */
void slots_init(struct shared *shared);

/* Takes a slot for a thread that exists: its index, 0 if it has one already, -ENOSPC if none is
 * free. */
int slots_take(struct shared *shared, uint32_t tgid, uint32_t tid, uint64_t now_ns);

/*
 * After slots were taken, and now and then: a program that was just looking at a thread may put it
 * back among the strangers.
 */
void slots_forget_strangers(struct shared *shared);

/* The thread was in a call when it got its slot: its time counts from when that is seen to be over.
 */
void slots_mark_blocked(struct shared *shared, uint32_t slot);

/* Slot of a thread, 0 if it is not traced. */
uint32_t slots_find(const struct shared *shared, uint32_t tid);

/* For a thread that ended while slots_take ran: as the kernel side does it. */
void slots_end(struct shared *shared, uint32_t tid, uint64_t now_ns);

/*
 * Adds a slot's rows to sums, as of now_ns. The thread may be running: tried again until what was
 * read is consistent (the rows' time equals the thread's time in syscalls); false if it never was.
 */
bool slots_add(const struct shared *shared, uint32_t slot, uint64_t now_ns,
	       struct process_sums *sums);

/* Zeroes a slot of an ended thread and puts it on the free list. */
void slots_give_back(struct shared *shared, uint32_t slot);

#endif
